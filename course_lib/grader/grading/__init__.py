"""A whole class: `assignment` says what is asked, `grade` goes through the submissions and loses none of them."""
