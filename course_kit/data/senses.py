"""Words with two senses, in short sentences: does a model tell the senses apart?

Eleven English words, two senses each, six sentences for each sense, written for this course. A set of this size shows
what happens to a word's vector through the layers; it is not a benchmark, and its sentences are easy.
"""

from __future__ import annotations

__all__ = ["SENSES"]

# Word to sense to sentences. The word occurs once in each sentence, in exactly this form.
SENSES: dict[str, dict[str, tuple[str, ...]]] = {
    "flies": {
        "verb": (
            "Time flies like an arrow.",
            "The plane flies over the town.",
            "A bird flies to its nest.",
            "The pilot flies to London every week.",
            "The kite flies high above the beach.",
            "She flies home on Monday.",
        ),
        "insect": (
            "Fruit flies like a banana.",
            "The flies sat on the meat.",
            "There are flies in the kitchen.",
            "A spider eats flies.",
            "The cow chases the flies away with its tail.",
            "He hates the flies around the rubbish.",
        ),
    },
    "bank": {
        "money": (
            "She opened an account at the bank.",
            "The bank lent him money.",
            "He works at a bank in the city.",
            "The bank raised its interest rates.",
            "I took cash from the bank.",
            "The bank was robbed in the morning.",
        ),
        "river": (
            "They sat on the bank of the river.",
            "The boat lay by the muddy bank.",
            "Willows grow along the bank of the stream.",
            "He fished from the bank.",
            "The river burst its bank after the rain.",
            "Ducks slept on the grassy bank.",
        ),
    },
    "bat": {
        "animal": (
            "The bat hung upside down in the cave.",
            "A bat flew out at night.",
            "The bat catches insects in the dark.",
            "A bat has wings of skin.",
            "We saw a bat in the attic.",
            "The bat sleeps during the day.",
        ),
        "sport": (
            "He hit the ball with a bat.",
            "The player swung the bat.",
            "She bought a wooden bat for baseball.",
            "The batter broke his bat.",
            "He carried his bat to the pitch.",
            "The coach held the bat with both hands.",
        ),
    },
    "spring": {
        "season": (
            "The flowers bloom in spring.",
            "In spring the days grow longer.",
            "Birds return every spring.",
            "We plant seeds in spring.",
            "Last spring was warm and dry.",
            "The snow melts in spring.",
        ),
        "coil": (
            "The spring in the mattress is broken.",
            "The clock needs a new spring.",
            "A metal spring pushes the door shut.",
            "The spring was stretched too far.",
            "He pressed the coiled spring together.",
            "The pen has a tiny spring inside.",
        ),
    },
    "match": {
        "fire": (
            "She lit the candle with a match.",
            "He struck a match in the dark.",
            "The match burned his fingers.",
            "A wet match does not light.",
            "There was one match left in the box.",
            "The fire began with a single match.",
        ),
        "game": (
            "Our team won the match.",
            "The match ended in a draw.",
            "They watched the football match.",
            "The tennis match lasted four hours.",
            "He scored twice in the match.",
            "The referee stopped the match.",
        ),
    },
    "bark": {
        "tree": (
            "The bark of the tree is rough.",
            "He peeled the bark from the branch.",
            "Beetles live under the bark.",
            "The oak has thick bark.",
            "Cork is made from bark.",
            "The birch has white bark.",
        ),
        "dog": (
            "The dog began to bark.",
            "We heard a loud bark at the gate.",
            "Dogs bark at strangers.",
            "The puppy gave a short bark.",
            "The bark of the hound woke us.",
            "His dog does not bark at night.",
        ),
    },
    "crane": {
        "machine": (
            "The crane lifted the steel beam.",
            "A crane stood on the building site.",
            "The crane unloaded the ship.",
            "He operates a crane at the harbour.",
            "The workers fixed the hook of the crane.",
            "The crane moved the concrete blocks.",
        ),
        "bird": (
            "The crane stood in the water on one leg.",
            "A crane built its nest in the marsh.",
            "The crane spread its wings.",
            "We saw a crane catch a fish.",
            "The crane migrates to the south.",
            "A white crane flew over the lake.",
        ),
    },
    "mouse": {
        "animal": (
            "The cat caught a mouse.",
            "A mouse ran across the floor.",
            "The mouse ate the cheese.",
            "The owl swallowed a mouse.",
            "There is a mouse in the barn.",
            "The mouse hid in its hole.",
        ),
        "computer": (
            "She clicked with the mouse.",
            "The mouse is plugged into the computer.",
            "Move the mouse to the icon.",
            "He bought a wireless mouse and a keyboard.",
            "The left button of the mouse is broken.",
            "The cursor follows the mouse.",
        ),
    },
    "light": {
        "brightness": (
            "The light in the room was bright.",
            "Turn off the light.",
            "The light of the moon fell on the sea.",
            "She saw a light in the window.",
            "The light shone through the curtains.",
            "He read by the light of a lamp.",
        ),
        "little weight": (
            "The suitcase is light.",
            "She carried a light bag.",
            "He ate a light lunch.",
            "A light jacket is enough today.",
            "The box was light enough to lift.",
            "Feathers are very light.",
        ),
    },
    "ring": {
        "jewellery": (
            "She wore a gold ring.",
            "He gave her a ring with a diamond.",
            "The ring fell off her finger.",
            "The wedding ring was too small.",
            "The jeweller repaired the ring.",
            "He lost his silver ring.",
        ),
        "sound": (
            "I heard the telephone ring.",
            "The bells ring on Sunday.",
            "Please ring the bell at the door.",
            "Her phone did not ring all day.",
            "The alarm will ring at six.",
            "They ring the bell before dinner.",
        ),
    },
    "plant": {
        "green": (
            "The plant needs water.",
            "She put the plant in a pot.",
            "A green plant grew by the window.",
            "The plant has yellow leaves.",
            "He waters the plant every day.",
            "The plant flowers in June.",
        ),
        "factory": (
            "He works in a car plant.",
            "The plant produces steel.",
            "The chemical plant was closed.",
            "A power plant stands by the river.",
            "The plant employs five hundred workers.",
            "They built a new plant for engines.",
        ),
    },
}
