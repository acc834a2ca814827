"""The words of `course_kit.data.grammar`: nouns, verbs, adjectives, places, and which of them go together.

To add a noun, write it into `NOUNS` and name it in the rows of `KINDS` and `ADJECTIVES` that fit. To add a verb, write
a line into `VERBS`. A word of two meanings (Bank, Schloss, tragen) is entered twice, in company that tells them apart.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

__all__ = ["ADVERBS", "KINDS", "NOUNS", "PLACES", "VERBS", "Noun", "Verb", "adjectives", "nouns"]


@dataclass(frozen=True, eq=False)
class Noun:
    """A star in `NOUNS` marks a weak noun (der Junge, den Jungen): its other cases look like its plural."""

    german: str
    gender: str  # m, f, n
    plural: str
    weak: bool
    english: str
    english_plural: str
    whose: str  # what "sein" or "ihr" means after it: his, her, its, their

    @property
    def is_pair(self) -> bool:
        """Pants, glasses: English has no singular, hence no "a", and counts pairs."""
        return self.english == self.english_plural and self.english.endswith("s")


# der/die/das singular, plural = English(/irregular plural) (whose)
NOUNS = """
der Mann, Männer = man/men; die Frau, Frauen = woman/women; der Arbeiter, Arbeiter = worker; der Koch, Köche = chef
die Köchin, Köchinnen = chef; die Lehrerin, Lehrerinnen = teacher; der Tourist*, Touristen = tourist
die Touristin, Touristinnen = tourist; der Student*, Studenten = student; die Studentin, Studentinnen = student
der Bauer*, Bauern = farmer; die Bäuerin, Bäuerinnen = farmer; die Tänzerin, Tänzerinnen = dancer
der Clown, Clowns = clown; der Polizist*, Polizisten = police officer; die Polizistin, Polizistinnen = police officer
der Straßenmusiker, Straßenmusiker = street musician; der Kellner, Kellner = waiter
die Kellnerin, Kellnerinnen = waitress; der Feuerwehrmann, Feuerwehrleute = firefighter
die Fotografin, Fotografinnen = photographer; das Baby, Babys = baby; der Junge*, Jungen = boy
das Mädchen, Mädchen = girl (her); das Kind, Kinder = child/children (their); der Schüler, Schüler = schoolboy
die Schülerin, Schülerinnen = schoolgirl; der Fußballspieler, Fußballspieler = soccer player
die Fußballspielerin, Fußballspielerinnen = soccer player; der Tennisspieler, Tennisspieler = tennis player
die Tennisspielerin, Tennisspielerinnen = tennis player; der Baseballspieler, Baseballspieler = baseball player
die Baseballspielerin, Baseballspielerinnen = baseball player; der Bruder, Brüder = brother
die Schwester, Schwestern = sister; der Nachbar*, Nachbarn = neighbor; die Großmutter, Großmütter = grandmother
der Großvater, Großväter = grandfather; der Hund, Hunde = dog (its); die Katze, Katzen = cat (its)
der Welpe*, Welpen = puppy (its); das Pferd, Pferde = horse; der Hase*, Hasen = rabbit (its)
der Esel, Esel = donkey (its); der Elefant*, Elefanten = elephant (its); die Kuh, Kühe = cow (its)
die Ziege, Ziegen = goat (its); das Schaf, Schafe = sheep/sheep; die Ente, Enten = duck (its)
der Affe*, Affen = monkey (its); der Strauß, Strauße = ostrich (its); der Strauß, Sträuße = bouquet
der Hut, Hüte = hat; die Mütze, Mützen = cap; der Helm, Helme = helmet; die Brille, Brillen = glasses/glasses
die Sonnenbrille, Sonnenbrillen = sunglasses/sunglasses; die Jacke, Jacken = jacket; der Mantel, Mäntel = coat
der Pullover, Pullover = sweater; das Hemd, Hemden = shirt; das T-Shirt, T-Shirts = t-shirt
die Hose, Hosen = pants/pants; die Regenjacke, Regenjacken = raincoat; die Weste, Westen = vest
die Uniform, Uniformen = uniform; der Schal, Schals = scarf/scarves; die Krawatte, Krawatten = tie
die Schürze, Schürzen = apron; der Ball, Bälle = ball; der Luftballon, Luftballons = balloon; die Puppe, Puppen = doll
der Drachen, Drachen = kite; das Spielzeugauto, Spielzeugautos = toy car; der Teddybär*, Teddybären = teddy bear
der Schneeball, Schneebälle = snowball; die Kiste, Kisten = box; der Koffer, Koffer = suitcase
die Tasche, Taschen = bag; der Korb, Körbe = basket; der Eimer, Eimer = bucket; der Rucksack, Rucksäcke = backpack
die Handtasche, Handtaschen = handbag; der Stuhl, Stühle = chair; der Regenschirm, Regenschirme = umbrella
der Stein, Steine = stone; der Stock, Stöcke = stick; die Flasche, Flaschen = bottle; der Becher, Becher = cup
das Handtuch, Handtücher = towel; die Decke, Decken = blanket; die Decke, Decken = ceiling; die Wand, Wände = wall
der Zaun, Zäune = fence; das Geschenk, Geschenke = present; die Tür, Türen = door; das Fenster, Fenster = window
der Schrank, Schränke = cabinet; das Schloss, Schlösser = lock; das Schloss, Schlösser = castle
die Bank, Bänke = bench; die Bank, Banken = bank; das Sofa, Sofas = sofa; die Lampe, Lampen = lamp
der Fernseher, Fernseher = television; das Radio, Radios = radio; der Laptop, Laptops = laptop
die Birne, Birnen = pear; die Birne, Birnen = light bulb; der Reifen, Reifen = tire; der Apfel, Äpfel = apple
die Banane, Bananen = banana; die Kartoffel, Kartoffeln = potato/potatoes; die Karotte, Karotten = carrot
das Sandwich, Sandwiches = sandwich; das Eis, Eis = ice cream; der Teller, Teller = plate; der Topf, Töpfe = pot
die Kerze, Kerzen = candle; die Laterne, Laternen = lantern; das Zelt, Zelte = tent; die Bühne, Bühnen = stage
die Luftmatratze, Luftmatratzen = air mattress; der Schläger, Schläger = racket; der Schläger, Schläger = bat
das Buch, Bücher = book; die Zeitung, Zeitungen = newspaper; der Brief, Briefe = letter; das Gedicht, Gedichte = poem
die Geschichte, Geschichten = story; das Bild, Bilder = picture; das Foto, Fotos = photo
die Landkarte, Landkarten = map; das Fahrrad, Fahrräder = bike; das Motorrad, Motorräder = motorcycle
der Roller, Roller = scooter; das Auto, Autos = car; der Lastwagen, Lastwagen = truck
der Traktor, Traktoren = tractor; das Taxi, Taxis = taxi; der Bus, Busse = bus
die Straßenbahn, Straßenbahnen = tram; der Schlitten, Schlitten = sled; der Karren, Karren = cart
der Kinderwagen, Kinderwagen = stroller; der Einkaufswagen, Einkaufswagen = shopping cart; der Park, Parks = park
der Garten, Gärten = garden; der Wald, Wälder = forest; die Wiese, Wiesen = meadow
der Spielplatz, Spielplätze = playground; der Strand, Strände = beach; die Straße, Straßen = street
der Marktplatz, Marktplätze = market square; die Bushaltestelle, Bushaltestellen = bus stop
der Bahnhof, Bahnhöfe = train station; die Brücke, Brücken = bridge; der Fluss, Flüsse = river; der See, Seen = lake
das Schwimmbecken, Schwimmbecken = swimming pool; die Pfütze, Pfützen = puddle; der Baum, Bäume = tree
der Felsen, Felsen = rock; der Hügel, Hügel = hill; die Treppe, Treppen = staircase; die Leiter, Leitern = ladder
die Mauer, Mauern = wall; der Tunnel, Tunnel = tunnel; das Haus, Häuser = house; die Kirche, Kirchen = church
das Museum, Museen = museum; der Turm, Türme = tower; der Brunnen, Brunnen = fountain
das Denkmal, Denkmäler = monument; der Laden, Läden = store; der Supermarkt, Supermärkte = supermarket
die Küche, Küchen = kitchen; das Wohnzimmer, Wohnzimmer = living room; der Flur, Flure = hallway
der Balkon, Balkone = balcony; die Werkstatt, Werkstätten = workshop; die Garage, Garagen = garage
der Sportplatz, Sportplätze = sports field; die Turnhalle, Turnhallen = gym; der Fußball, Fußbälle = soccer
das Tennis, Tennis = tennis; der Volleyball, Volleybälle = volleyball; das Schach, Schachs = chess
die Gitarre, Gitarren = the guitar; die Geige, Geigen = the violin; das Klavier, Klaviere = the piano
die Trompete, Trompeten = the trumpet
"""

# A kind names nouns or other kinds. Of two nouns that are written alike, the one meant follows in brackets.
KINDS = {
    "adult": """Mann Frau Arbeiter Koch Köchin Lehrerin Tourist Touristin Student Studentin Bauer Bäuerin Tänzerin Clown
        Polizist Polizistin Straßenmusiker Kellner Kellnerin Feuerwehrmann Fotografin""",
    "child": "Junge Mädchen Kind Schüler Schülerin",
    "tennis": "Tennisspieler Tennisspielerin",
    "baseball": "Baseballspieler Baseballspielerin",
    "player": "Fußballspieler Fußballspielerin tennis baseball",
    "person": "adult child player",
    "pet": "Hund Katze Welpe Hase",
    "ridden": "Pferd Esel Elefant",
    "animal": "pet ridden Kuh Ziege Schaf Ente Affe Strauß(ostrich)",
    "kin": "Bruder Schwester Großmutter Großvater",  # said with "sein" or "ihr" only
    "clothes": "Jacke Mantel Pullover Hemd T-Shirt Hose Regenjacke Weste Uniform",
    "headwear": "Hut Mütze Helm Brille Sonnenbrille",
    "neckwear": "Schal Krawatte Schürze",
    "toy": "Ball Luftballon Puppe Drachen Spielzeugauto Teddybär",
    "luggage": "Kiste Koffer Tasche Korb Eimer Rucksack Handtasche",
    "thing": """toy luggage Stuhl Regenschirm Stein Stock Flasche Becher Handtuch Decke(blanket) Geschenk Zelt
        Luftmatratze Schlitten Karren Kinderwagen Einkaufswagen Zaun Laterne Kerze""",
    "bike": "Fahrrad Motorrad Roller",
    "car": "Auto Lastwagen Taxi",
    "transit": "Bus Straßenbahn",
    "cart": "Schlitten Karren Kinderwagen Einkaufswagen",
    "device": "Lampe Fernseher Radio Laptop",
    "fruit": "Apfel Banane Birne(pear) Kartoffel Karotte",
    "food": "fruit Sandwich Eis",
    "dish": "Teller Topf",
    "text": "Brief Gedicht Geschichte",
    "picture": "Bild Foto Landkarte",
    "water": "See Schwimmbecken",
    "landmark": "Haus Kirche Museum Turm Brunnen Denkmal",
    "entered": "Haus Kirche Museum Laden Supermarkt Schloss(castle) Bank(bank)",
    "seat": "Bank(bench) Stuhl Sofa Decke(blanket) Stein Mauer",
    "bare": "Fußball Tennis Volleyball Schach Gitarre Geige Klavier Trompete",  # said without any article
    "held": "toy Regenschirm Becher Flasche Strauß(bouquet) Geschenk",
    "found": "toy luggage Stein Stock Flasche Schläger(bat)",
    "painted": "Decke(ceiling) Wand Zaun Bank(bench) Tür",
    "sight": "landmark Schloss(castle) animal Clown",
    "own": "clothes headwear neckwear toy luggage bike Auto pet Regenschirm Laptop Buch",  # can be said with "sein"
}

COLORS = "rot=red blau=blue grün=green gelb=yellow schwarz=black weiß=white braun=brown grau=gray"
SIZES = "klein=small groß=big"
# Which adjectives a kind of noun takes: German stem=English. What "groß" means is decided by the noun that follows it.
ADJECTIVES = {
    "adult": "jung=young alt=old groß=tall fröhlich=cheerful lachend=laughing lächelnd=smiling müd=tired blond=blond",
    "child": "klein=little fröhlich=cheerful lachend=laughing lächelnd=smiling müd=tired blond=blond neugierig=curious",
    "player": "jung=young groß=tall konzentriert=focused verschwitzt=sweaty",
    "Baby": "klein=little müd=tired lächelnd=smiling",
    "animal": SIZES + " braun=brown weiß=white schwarz=black nass=wet jung=young müd=tired gefleckt=spotted",
    "clothes": COLORS + " gestreift=striped kariert=plaid",
    "headwear neckwear bike car transit Traktor": COLORS,
    "thing Tür Fenster Schrank dish": COLORS + " " + SIZES,
    "device Buch Schloss(lock) Birne(light bulb)": "alt=old neu=new " + SIZES,
    "fruit": "frisch=fresh " + SIZES,
    "text": "lang=long kurz=short alt=old",
    "picture": "bunt=colorful alt=old " + SIZES,
    "Strauß(bouquet)": "bunt=colorful " + SIZES,
    "landmark entered Bank(bench) Sofa": "alt=old klein=small groß=large",
    "Park Garten Wald Wiese water": "klein=small groß=large ruhig=quiet",
    "Straße Brücke": "ruhig=quiet belebt=busy schmal=narrow breit=wide",
}

# preposition English: nouns. All with the dative.
PLACES = {
    "outside": """in in: Park Garten Wald; auf on: Spielplatz Straße; auf in: Wiese Marktplatz; an on: Strand;
        an by: Fluss See; vor in front of: landmark; neben next to: landmark; unter under: Baum""",
    "inside": "in in: Küche Wohnzimmer Flur; auf on: Balkon; neben next to: Sofa",
    "work": "in in: Garage Werkstatt Garten; vor in front of: Haus",
    "kitchen": "in in: Küche Garten; auf on: Balkon",
    "road": "auf on: Straße Brücke; in in: Park Wald",
    "street": "auf on: Straße Brücke",
    "sport": "auf on: Sportplatz; auf in: Wiese; in in: Turnhalle Park; an on: Strand",
    "music": "auf on: Bühne Straße; auf in: Marktplatz; in in: Park; vor in front of: landmark",
    "stop": "an at: Bushaltestelle Bahnhof; vor in front of: Kirche Museum Denkmal; auf in: Marktplatz",
    "seat": "auf on: seat",
    "bed": "auf on: Sofa Decke(blanket); auf in: Wiese; unter under: Baum; neben next to: Zelt",
    "water": "in in: water Fluss",
    "shop": "in in: Laden Supermarkt; auf in: Marktplatz",
}
ADVERBS = {
    "vorsichtig": "carefully",
    "langsam": "slowly",
    "fröhlich": "happily",
    "stolz": "proudly",
    "leise": "quietly",
}


@dataclass(frozen=True, eq=False)
class Verb:
    """One meaning of a verb.

    `german` is the infinitive, with a bar after a separable prefix, and "sich " before it if the verb is reflexive.
    English "pick up" is said in the simple present, "play/playing" in the progressive. `frame` says how the object is
    joined: empty for the accusative, "dat" for the dative, or "preposition case English preposition"; a preposition
    without English belongs to the verb (an … vorbeigehen: walk past). `subject` and `object` name nouns and kinds,
    `where` places, `how` adverbs.
    """

    german: str
    singular: str  # third person, without the prefix
    english: str
    subject: str
    object: str = ""
    frame: str = ""
    where: str = "outside"
    how: str = ""
    number: str = "any"  # of the object: any, one, or each: as many as the subject

    @property
    def progressive(self) -> bool:
        return "/" in self.english

    @property
    def ing(self) -> str:
        return self.english.partition("/")[2]

    @property
    def base(self) -> str:
        first, _, ing = self.english.partition("/")
        return " ".join([first, *ing.split()[1:]])

    @property
    def case(self) -> str:
        return "dat" if "dat" in self.frame.split() else "acc"

    @property
    def preposition(self) -> tuple[str, str] | None:
        """German and English."""
        german, _, english = self.frame.partition(self.case)
        return (german.strip(), english.strip()) if german else None


CAREFUL = "vorsichtig langsam"
VERBS = (
    Verb("auf|heben", "hebt", "pick up", "person", "found", how=CAREFUL),
    Verb("hoch|heben", "hebt", "lift up", "person", "luggage Stein child", how=CAREFUL),
    Verb("ab|stellen", "stellt", "put down", "person", "luggage Stuhl", where="outside inside", how=CAREFUL),
    Verb("weg|werfen", "wirft", "throw away", "person", "Flasche Becher Zeitung", where="outside inside"),
    Verb("weg|tragen", "trägt", "carry away", "person", "luggage Stuhl", how=CAREFUL),
    Verb("werfen", "wirft", "throw", "person", "Ball Schneeball Stein Stock"),
    Verb("fangen", "fängt", "catch", "person Hund", "Ball", number="one"),
    Verb("halten", "hält", "hold/holding", "person", "held", how="stolz"),
    Verb("halten", "hält", "hold/holding", "tennis", "Schläger(racket)", where="sport", number="each"),
    Verb("halten", "hält", "hold/holding", "baseball", "Schläger(bat)", where="sport", number="each"),
    Verb("schwingen", "schwingt", "swing", "tennis", "Schläger(racket)", where="sport", number="each"),
    Verb("schwingen", "schwingt", "swing", "baseball", "Schläger(bat)", where="sport", number="each"),
    Verb("an|halten", "hält", "stop", "adult", "bike car Bus", where="street"),
    Verb("tragen", "trägt", "carry/carrying", "person", "luggage Stuhl Regenschirm", how=CAREFUL),
    Verb("tragen", "trägt", "wear/wearing", "person", "clothes headwear neckwear", how="stolz", number="each"),
    Verb("an|ziehen", "zieht", "put on", "person", "clothes", where="inside outside", how="langsam", number="each"),
    Verb("aus|ziehen", "zieht", "take off", "person", "clothes", where="inside outside", how="langsam", number="each"),
    Verb("auf|setzen", "setzt", "put on", "person", "headwear", how="stolz", number="each"),
    Verb("ab|setzen", "setzt", "take off", "person", "headwear", how="langsam", number="each"),
    Verb("um|binden", "bindet", "put on", "person", "neckwear", where="inside", number="each"),
    Verb("ziehen", "zieht", "pull/pulling", "person ridden", "cart", how="langsam", number="one"),
    Verb("schieben", "schiebt", "push/pushing", "person", "cart bike car", where="street", how="langsam", number="one"),
    Verb("auf|machen", "macht", "open", "person", "Fenster Tür Kiste Koffer Schrank", where="inside", how=CAREFUL),
    Verb("zu|machen", "macht", "close", "person", "Fenster Tür Kiste Koffer Schrank", where="inside", how="leise"),
    Verb("auf|schließen", "schließt", "unlock", "adult", "Tür Schrank Schloss(lock) car", where="", number="one"),
    Verb("ab|schließen", "schließt", "lock", "adult", "Tür Schrank car Fahrrad", where="", number="one"),
    Verb("ein|schalten", "schaltet", "turn on", "person", "device", where="inside"),
    Verb("aus|schalten", "schaltet", "turn off", "person", "device", where="inside"),
    Verb("auf|hängen", "hängt", "hang up", "adult", "clothes Handtuch Bild Lampe", where="inside", how=CAREFUL),
    Verb("ab|hängen", "hängt", "take down", "adult", "Bild Lampe Handtuch", where="inside", how=CAREFUL),
    Verb("auf|bauen", "baut", "set up", "adult", "Zelt Bühne", number="one"),
    Verb("ab|bauen", "baut", "take down", "adult", "Zelt Bühne", number="one"),
    Verb("auf|blasen", "bläst", "blow up", "person", "Luftballon Luftmatratze"),
    Verb("aus|blasen", "bläst", "blow out", "person", "Kerze", where="inside", how="vorsichtig"),
    Verb("an|zünden", "zündet", "light", "adult", "Kerze Laterne", where="outside inside", how="vorsichtig"),
    Verb("aus|packen", "packt", "unpack", "person", "luggage", where="inside", how="langsam"),
    Verb("aus|packen", "packt", "unwrap", "person", "Geschenk", where="inside", how=CAREFUL),
    Verb("ein|packen", "packt", "wrap", "person", "Geschenk", where="inside", how=CAREFUL),
    Verb("zusammen|falten", "faltet", "fold up", "person", "Decke(blanket) Handtuch Zeitung Landkarte", where="inside"),
    Verb("streichen", "streicht", "paint/painting", "adult", "painted", where="", how=CAREFUL),
    Verb("reparieren", "repariert", "repair/repairing", "adult", "Schloss(lock) bike car device Zaun", where="work"),
    Verb("waschen", "wäscht", "wash/washing", "adult", "car bike", where="work"),
    Verb("ab|trocknen", "trocknet", "dry", "person", "dish", where="kitchen", how=CAREFUL),
    Verb("aus|wechseln", "wechselt", "change", "adult", "Birne(light bulb) Reifen", where="work", number="one"),
    Verb("ein|schrauben", "schraubt", "screw in", "adult", "Birne(light bulb)", where="inside", number="one"),
    Verb("schälen", "schält", "peel/peeling", "person", "fruit", where="kitchen", how=CAREFUL),
    Verb("essen", "isst", "eat/eating", "person", "food", where="outside kitchen", number="one"),
    Verb("auf|essen", "isst", "eat up", "person", "food", where="kitchen", number="one"),
    Verb("fressen", "frisst", "eat/eating", "animal", "fruit", number="one"),
    Verb("kaufen", "kauft", "buy", "person", "Strauß(bouquet) food Zeitung Brille", where=""),
    Verb("füttern", "füttert", "feed/feeding", "person", "animal"),
    Verb("streicheln", "streichelt", "pet/petting", "person", "pet ridden", how=CAREFUL),
    Verb("baden", "badet", "bathe/bathing", "person", "Hund Welpe", where=""),
    Verb("fotografieren", "fotografiert", "take/taking a picture of", "person", "sight", where=""),
    Verb("besichtigen", "besichtigt", "visit", "person", "Kirche Museum Schloss(castle)", where="", number="one"),
    Verb("betreten", "betritt", "enter", "adult", "entered", where="", how="leise", number="one"),
    Verb("verlassen", "verlässt", "leave", "adult", "entered", where="", how="leise", number="one"),
    Verb("lesen", "liest", "read/reading", "person", "Buch Zeitung text", where="outside inside seat", number="one"),
    Verb("vor|lesen", "liest", "read out", "person", "text", where="inside music", how="stolz", number="one"),
    Verb("sich an|sehen", "sieht", "look/looking at", "person", "picture Buch", where="inside seat", how=""),
    Verb("an|rufen", "ruft", "call", "person", "kin", where="outside inside"),
    Verb("ab|holen", "holt", "pick up", "person", "kin", where="stop"),
    Verb("umarmen", "umarmt", "hug", "person", "kin Teddybär", where="outside inside stop", number="one"),
    Verb("helfen", "hilft", "help/helping", "person", "kin Nachbar Frau", "dat", where="outside kitchen", number="one"),
    Verb("zu|sehen", "sieht", "watch/watching", "person", "animal child Clown Tänzerin Straßenmusiker", "dat"),
    Verb("zu|winken", "winkt", "wave/waving to", "person", "kin child Nachbar", "dat", how="fröhlich"),
    Verb("nach|laufen", "läuft", "run/running after", "animal child", "pet Ente Ball", "dat", number="one"),
    Verb("spielen", "spielt", "play/playing", "person", "Fußball Tennis Volleyball", where="sport", how="fröhlich"),
    Verb("spielen", "spielt", "play/playing", "person", "Gitarre Geige Trompete", where="music"),
    Verb("spielen", "spielt", "play/playing", "person", "Schach Klavier", where="inside"),
    Verb("spielen", "spielt", "play/playing", "child pet", "toy", "mit dat with", "outside inside", "fröhlich"),
    Verb("warten", "wartet", "wait/waiting", "person", "transit Taxi kin", "auf acc for", "stop", "", "one"),
    Verb("fahren", "fährt", "ride/riding", "person", "bike", where="road", how="langsam", number="each"),
    Verb("fahren", "fährt", "drive/driving", "adult", "car Traktor", where="street", how="langsam", number="each"),
    Verb("reiten", "reitet", "ride/riding", "person", "ridden", "auf dat", where="road", how="stolz", number="each"),
    Verb("vorbei|gehen", "geht", "walk/walking past", "person animal", "landmark", "an dat", "", "langsam leise"),
    Verb("vorbei|fahren", "fährt", "drive/driving past", "adult", "landmark", "an dat", where="", how="langsam"),
    Verb("ein|steigen", "steigt", "get", "person", "transit", "in acc on", where="stop", number="one"),
    Verb("ein|steigen", "steigt", "get", "person", "car", "in acc into", where="stop", number="one"),
    Verb("aus|steigen", "steigt", "get", "person", "transit", "aus dat off", where="stop", number="one"),
    Verb("aus|steigen", "steigt", "get", "person", "car", "aus dat out of", where="stop", number="one"),
    Verb("hinauf|klettern", "klettert", "climb up", "person Ziege Affe", "Hügel Felsen Leiter", "", "", CAREFUL, "one"),
    Verb("hinunter|laufen", "läuft", "run/running down", "person pet", "Hügel Treppe", where="", number="one"),
    Verb("klettern", "klettert", "climb/climbing", "person", "Zaun Mauer Felsen", "über acc over", number="one"),
    Verb(
        "springen",
        "springt",
        "jump",
        "person pet Pferd Ziege",
        "Zaun Pfütze Stein Mauer",
        "über acc over",
        number="one",
    ),
    Verb(
        "springen", "springt", "jump", "person Hund Welpe Ente", "water Fluss Pfütze", "in acc into", "", number="one"
    ),
    Verb("laufen", "läuft", "run/running", "person animal", "Wald Park Garten", "in acc into", where="", number="one"),
    Verb("gehen", "geht", "walk/walking", "person animal", "Wald Park Tunnel", "durch acc through", "", number="one"),
    Verb("gehen", "geht", "walk/walking", "person animal", "Straße Brücke Wiese", "über acc across", "", number="one"),
    Verb("sich setzen", "setzt", "sit down", "person", "seat", "auf acc on", number="one"),
    Verb("sitzen", "sitzt", "sit/sitting", "person pet Affe", where="seat"),
    Verb("liegen", "liegt", "lie/lying", "person pet", where="bed"),
    Verb("schlafen", "schläft", "sleep/sleeping", "person pet Baby", where="bed seat"),
    Verb("sich aus|ruhen", "ruht", "rest/resting", "person animal", where="bed outside"),
    Verb("stehen", "steht", "stand/standing", "person animal", where="outside stop"),
    Verb("laufen", "läuft", "run/running", "person animal", where="outside"),
    Verb("schwimmen", "schwimmt", "swim/swimming", "person Hund Ente Elefant", where="water", how="langsam"),
    Verb("tanzen", "tanzt", "dance/dancing", "person", where="music outside", how="fröhlich"),
    Verb("singen", "singt", "sing/singing", "person", where="music outside", how="fröhlich leise"),
    Verb("weinen", "weint", "cry/crying", "child Baby", where="inside", how="leise"),
    Verb("sich um|drehen", "dreht", "turn around", "person animal", where="outside stop", how="langsam"),
    Verb("auf|wachen", "wacht", "wake up", "person pet Baby", where="bed", how="langsam"),
    Verb("ein|kaufen", "kauft", "shop/shopping", "person", where="shop"),
)


@cache
def all_nouns() -> tuple[Noun, ...]:
    return tuple(noun_of(entry) for line in NOUNS.strip().splitlines() for entry in line.split(";"))


def noun_of(entry: str) -> Noun:
    """Read "das Kind, Kinder = child/children (their)"."""
    try:
        german, english = entry.strip().split(" = ")
        article, singular, plural = german.replace(",", "").split(" ")
        gender = {"der": "m", "die": "f", "das": "n"}[article]
    except (ValueError, KeyError):
        raise ValueError(
            f'expected a noun like "der Hut, Hüte = hat", got {entry.strip()!r}: mend the line in NOUNS'
        ) from None
    english, _, whose = english.partition(" (")
    english, _, english_plural = english.partition("/")
    whose = whose.rstrip(")") or {"m": "his", "f": "her", "n": "its"}[gender]
    weak, singular = singular.endswith("*"), singular.rstrip("*")
    return Noun(singular, gender, plural, weak, english, english_plural or english_plural_of(english), whose)


def english_plural_of(english: str) -> str:
    if re.search("[^aeiou]y$", english):
        return english[:-1] + "ies"
    return english + ("es" if re.search("(s|x|ch|sh)$", english) else "s")


@cache
def nouns(names: str) -> tuple[Noun, ...]:
    """The nouns that these names of nouns and kinds stand for, for instance "Stuhl clothes Bank(bench)"."""
    found: list[Noun] = []
    for name in re.findall(r"[^\s(]+(?:\([^)]*\))?", names):
        german, _, english = name.rstrip(")").partition("(")
        matching = [noun for noun in all_nouns() if noun.german == german and english in ("", noun.english)]
        if name not in KINDS and len(matching) != 1:
            raise ValueError(
                f"expected a kind or a noun, got {name!r}, which fits {len(matching)} nouns: "
                "write it into NOUNS, or say in brackets which one is meant"
            )
        found += nouns(KINDS[name]) if name in KINDS else matching
    return tuple(dict.fromkeys(found))


@cache
def adjectives(noun: Noun) -> dict[str, str]:
    """The adjectives that go with the noun, German stem to English."""
    rows = [row for kinds, row in ADJECTIVES.items() if noun in nouns(kinds)]
    return dict(pair.split("=") for row in rows for pair in row.split())
