"""state/selection.py: which option a reply chooses, and what chooses none."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from state.prompts import Option
from state.selection import MAX_LENGTH, choose

BURGERS: list[Option] = [{"name": "Shake Shack", "district": name} for name in ("Shibuya", "Shinjuku", "Harajuku")]
FILMS: list[Option] = ["Paprika", "Kagemusha", "Iron Lantern: Winter Road"]
TWO: list[Option] = ["Paprika", "Kagemusha"]
TIMES: list[Option] = ["6:00 PM", "7:30 PM", "9:45 PM"]
PRICES: list[Option] = ["$5", "$10", "$20"]
DATES: list[Option] = ["May 5th", "May 2nd"]
MILKS: list[Option] = ["Oat", "Smoked Maple Oat", "Maple"]
AIRLINES: list[Option] = ["Alpine Airlines", "Coral Airways"]
CINEMAS: list[Option] = ["Rialto 14 Grand Harbor", "Rialto Stone Quarry", "Odeon 9"]
CUISINES: list[Option] = ["Thai", "Ethiopian"]
RIDES: list[Option] = ["Shared", "Standard", "Premium"]
PAYMENTS: list[Option] = ["gift balance", "bank card", "travel card"]
DOCTORS: list[Option] = ["Cardiologist", "Eye Doctor", "Family Doctor"]
RATED: list[Option] = ["The Last Lighthouse (PG-13)", "Rust (R)", "Wolf Boy 2: Into the Snow (PG)", "A Paper Crown (R)"]
TOPPINGS: list[Option] = ["Cinnamon", "Sugar Free Cinnamon", "Peppermint", "White Mocha", "Oat Milk", "Extra Shot"]
REUNION: list[Option] = ["Under Glass", "Family Reunion"]
THIRTY: list[Option] = [f"Parcel {chr(65 + number % 26)}{'x' * (number // 26 + 1)}" for number in range(30)]


@pytest.mark.parametrize(
    "reply",
    [
        *(
            "2",
            "2.",
            "2)",
            "(2)",
            "#2",
            "no. 2",
            "nr. 2",
            "two",
            "number two",
            "option 2",
            "Choice 2!",
            "2️⃣",
            "②",
            "２",
            "٢",
        ),
        *(
            "2 please",
            "I'll take 2",
            "let's go with 2",
            "go for 2",
            "hmm, 2 I think",
            "2 for me",
            "my vote is 2",
            "2 lol",
        ),
        *(
            "the second",
            "2nd",
            "second",
            "the 2nd one",
            "Second one, thanks",
            "maybe the second one",
            "I choose the second",
        ),
        *("how about the second one?", "can I get the second one?", "the second one?", "the second on the list"),
        *(
            "the last but one",
            "second to last",
            "next to last",
            "the one before the last",
            "penultimate",
            "2nd from the end",
        ),
        *(
            "the middle one",
            "middle",
            "in the middle",
            "the one in the middle",
            "the one at position 2",
            "umm the second",
            "the secnd one",
            "the second shop please",
        ),
        *("2, for 4 people", "option 2 for 4 people", "the second one for 4 people", "3 seats in the second one"),
        *("> which one?\n2", "<@123> 2", "2\n\nthanks", "hey\nI think\nthe second one", "the second Shake Shack"),
    ],
)
def test_a_place_in_the_list_chooses(reply: str) -> None:
    assert choose(reply, BURGERS) == 1


@pytest.mark.parametrize(
    ("reply", "chosen"),
    [
        ("one", 0),
        ("one please", 0),
        ("number one", 0),
        ("the first", 0),
        ("top one", 0),
        ("last", 29),
        ("the very last one", 29),
        ("the bottom one", 29),
        ("third from last", 27),
        ("the third to last one", 27),
        ("last but two", 27),
        ("the last one but two", 27),
        ("the very first", 0),
        ("antepenultimate", 27),
        ("twentieth", 19),
        ("twenty-first", 20),
        ("twenty first", 20),
        ("twenty—first", 20),
        ("twentyfirst", 20),
        ("the 11th", 10),
        ("thirty", 29),
        ("🔟", 9),
    ],
)
def test_a_long_list_is_counted_from_either_end(reply: str, chosen: int) -> None:
    assert choose(reply, THIRTY) == chosen


@pytest.mark.parametrize(
    "reply",
    [
        *(
            "0",
            "4",
            "-1",
            "1.5",
            "10%",
            "192.",
            "31",
            "the fourth one",
            "the zeroth one",
            "the first ones",
            "thirty-first",
            "one hundred and second",
            "1/2",
        ),
        *("a second", "one second", "just a second", "wait a second please", "a third", "one third", "two thirds"),
        *("the next one", "the previous one", "that one", "the one", "I want one", "the other one"),
    ],
)
def test_a_place_that_is_not_there_chooses_nothing(reply: str) -> None:
    assert choose(reply, BURGERS) is None


@pytest.mark.parametrize(
    "reply",
    [
        *(
            "2 tickets",
            "2 tickets please",
            "two seats",
            "for 2",
            "for 2 people",
            "table for 2",
            "2 of us",
            "there are two",
        ),
        *("I have 2", "just 2", "2 more", "at 2", "2 pm", "in 2 minutes", "June 2nd", "on June 2nd", "on the 2nd"),
        *(
            "the first of June",
            "for the first time",
            "first class please",
            "I live on the second floor",
            "the second best",
        ),
        *("last night was fun", "first thing tomorrow", "First, what time is it?", "First I want to know the price"),
        *("me first", "from 2", "on the second page", "the second train leaves at 9", "it's at 12 Oak Street #2"),
        *("http://a.example/2", "<@2> hi", "<:two:2>", "`" * 3 + "2" + "`" * 3),
    ],
)
def test_a_number_that_is_no_place_chooses_nothing(reply: str) -> None:
    assert choose(reply, BURGERS) is None


@pytest.mark.parametrize(
    "reply",
    [
        *(
            "1 and 2",
            "one and three",
            "1 or 2",
            "one or two",
            "1,3",
            "1-3",
            "first and second",
            "the first or the third",
        ),
        *(
            "the first one or maybe the second",
            "the first two",
            "the last 2",
            "all of them",
            "both",
            "neither",
            "none of these",
        ),
        *(
            "either is fine",
            "whichever",
            "you choose",
            "doesn't matter",
            "Shibuya and Shinjuku",
            "Shibuya, the second one",
        ),
    ],
)
def test_several_or_none_choose_nothing(reply: str) -> None:
    assert choose(reply, BURGERS) is None


@pytest.mark.parametrize(
    "reply",
    [
        *("in Shinjuku", "the Shinjuku one", "Shinjuku", "SHINJUKU!!", "the one in Shinjuku please", "Shinjuku?"),
        *("shinjuko", "shinjyuku", "Shake Shack Shinjuku", "Shake Shack (Shinjuku)", "shake shack in shinjuku pls"),
        *("does Shinjuku have parking? ok that one", "is Shinjuku far? I'll take it", "not Shibuya, Shinjuku"),
        *("I was thinking of Shinjuku", "why not Shinjuku", "the Shinjuku one, does it have parking?"),
        *("the Shinjuku one with the terrace", "something in Shinjuku please", "I'd like to explore Shinjuku"),
        *("In Shinjuku. Which train goes there?", "> Shibuya\nShinjuku"),
        *("I'd like the one at Shinjuku please", "is there a Shinjuku one?", "Shinjuku was what I had in mind"),
    ],
)
def test_the_differing_attribute_chooses(reply: str) -> None:
    assert choose(reply, BURGERS) == 1


@pytest.mark.parametrize(
    "reply",
    [
        *(
            "Shake Shack",
            "what is the weather in Shinjuku?",
            "what's the weather in shinjuku",
            "In Shinjuku, what is open?",
        ),
        *(
            "I was in Shinjuku yesterday",
            "does Shinjuku have parking?",
            "I live in Shinjuku with six cats",
            "not Shinjuku",
        ),
        *(
            "tell me about Shinjuku",
            "can you tell me if Shinjuku is far",
            "is the second one open late?",
            "anything else?",
            "meet me at Shinjuku station at 3",
            "my train to Shinjuku is late",
            "can someone book a hotel in Shinjuku?",
            "does Shinjuku have parking? is that one good?",
            "does Shinjuku have parking? I saw that one yesterday",
            "Yes. Is Shinjuku far?",
            "no one likes Shinjuku",
            "skip Shinjuku",
            "I'd avoid Shinjuku",
        ),
        *("tell me about the second one", "", "???", "yes", "ok", "sounds good", "cancel", "I'm not sure", "thanks!"),
    ],
)
def test_what_only_asks_or_tells_of_an_option_does_not_choose_it(reply: str) -> None:
    assert choose(reply, BURGERS) is None


@pytest.mark.parametrize(
    ("reply", "options", "chosen"),
    [
        ("kagemusha", FILMS, 1),
        ("Let's do Kagemusha, that sounds great", FILMS, 1),
        ("I'd love to see Kagemusha! Now find me a table for 4 at 7.", FILMS, 1),
        ("I'd like 2 for Kagemusha", FILMS, 1),
        ("can I get 2 tickets for Kagemusha", FILMS, 1),
        ("I won't need a seat and I want Kagemusha", FILMS, 1),
        ("Kagemusha's fine", FILMS, 1),
        ("kagemsuha", FILMS, 1),
        ("No, Kagemusha", FILMS, 1),
        ("no I want Kagemusha", FILMS, 1),
        ("check the times for Kagemusha", FILMS, 1),
        ("opthamologist", ["Ophthalmologist", "Dermatologist"], 0),
        ("mcoha", ["Mocha", "Latte"], 0),
        ("B", ["Plan A", "Plan B"], 1),
        ("Yes. What time does Kagemusha start?", FILMS, 1),
        ("iron lantern", FILMS, 2),
        ("I think Iron Lantern sounds fun", FILMS, 2),
        ("the lantern one", FILMS, 2),
        ("winter road please", FILMS, 2),
        ("ironlantern", FILMS, 2),
        ("paper moon 2, I'd say", ["Papermoon", "Kagemusha"], 0),
        ("oat", MILKS, 0),
        ("maple", MILKS, 2),
        ("smoked maple oat please", MILKS, 1),
        ("the smoked maple one", MILKS, 1),
        ("the Odeon", CINEMAS, 2),
        ("Rialto 14", CINEMAS, 0),
        ("the Rialto in Stone Quarry", CINEMAS, 1),
        ("I want to fly Coral", AIRLINES, 1),
        ("a luxurious cabin", ["Luxury", "Plain"], 0),
        ("wombat", ["a badger", "a wombat", "a stoat"], 1),
        ("After", ["After", "Before Noon"], 0),
        ("I'd choose After", ["After", "Before Noon"], 0),
        ("How To Fold Paper is perfect", ["How to Fold Paper: Part One", "Kagemusha"], 0),
        ("cafe", ["Café", "Bar"], 0),
        ("CAFÉ!!", ["cafe", "bar"], 0),
        ("strasse", ["Straße", "Weg"], 0),
        ("渋谷で", ["渋谷", "新宿"], 0),
        ("pet & garden", ["Pet and Garden", "Books"], 0),
        ("the one in Port Ellis", [{"name": "A", "city": "Port Ellis"}, {"name": "B", "city": "Port Vale"}], 0),
        ("Lantern sounds good", FILMS, 2),
        ("the lantern would be nice", FILMS, 2),
        ("My friends would enjoy Kagemusha", FILMS, 1),
        ("Never mind the others, Kagemusha is what I want", FILMS, 1),
        ("I've heard great things about Kagemusha", FILMS, 1),
        ("Kagemusha was the one I wanted", FILMS, 1),
        ("Iron Lantern is exactly what I was looking for", FILMS, 2),
        ("I haven't seen Kagemusha yet, so that one", FILMS, 1),
        ("I didn't know Kagemusha was out, let's watch it", FILMS, 1),
        ("do you have Kagemusha?", FILMS, 1),
        ("are there any Kagemusha showings around Lisbon?", FILMS, 1),
        ("last lighthouse please", RATED, 0),
        ("wolf boy 2 for my kids", RATED, 2),
        ("4 seats for the wolf movie? Wolf Boy", RATED, 2),
        ("hmm paper crown looks cool, where's it playing", RATED, 3),
        ("I want two tickets for rust", RATED, 1),
        ("2 tickets at the Odeon please", CINEMAS, 2),
        ("I'd like the one at Stone Quarry please", CINEMAS, 1),
        ("the one in Grand Harbor is closest to me", CINEMAS, 0),
        ("We'd like a Thai place in Dublin, please", CUISINES, 0),
        ("I'm not a fan of Thai, so Ethiopian", CUISINES, 1),
        ("Find an Ethiopian restaurant for 6 people", CUISINES, 1),
        ("Get me a Premium ride to 22 Oak Street for 3 people", RIDES, 2),
        ("Just a standard one for one person", RIDES, 1),
        ("1 seat in a shared ride", RIDES, 0),
        ("from the balance", PAYMENTS, 0),
        ("I'll pay with the travel card. Make it private.", PAYMENTS, 2),
        ("check my bank card", PAYMENTS, 1),
        ("Book me with an Eye Doctor", DOCTORS, 1),
        ("I need a family doctor near Turin", DOCTORS, 2),
        ("I'd rather fly Coral", AIRLINES, 1),
        ("Alpine is my favorite airline", AIRLINES, 0),
        ("the sugar free one please", TOPPINGS, 1),
        ("a little bit of cinnamon on top", TOPPINGS, 0),
        ("Add one extra shot", TOPPINGS, 5),
        ("I want two pumps of peppermint", TOPPINGS, 2),
        ("May I please have oat milk in my latte?", TOPPINGS, 4),
        ("Family Reunion would be a good pick for us", REUNION, 1),
        ("the 1999 one", [{"name": "A", "year": 1999}, {"name": "B", "year": 2004}], 0),
    ],
)
def test_a_name_chooses_whole_in_part_or_mistyped(reply: str, options: list[Option], chosen: int) -> None:
    assert choose(reply, options) == chosen


@pytest.mark.parametrize(
    ("reply", "options"),
    [
        ("I prefer Northern Airlines", AIRLINES),
        ("my gift card", ["debit card", "credit card", "balance"]),
        ("use the gift card", ["debit card", "balance"]),
        ("the rialto", CINEMAS),
        ("Rialto 20 Grand Plaza", CINEMAS),
        ("Harbor Grand Rialto Stone", CINEMAS),
        ("I like funny films", ["Funny Hat", "Paprika"]),
        ("any other film?", ["The Small Film 2", "Paprika"]),
        ("do you have a film with dogs", ["The Small Film 2", "Paprika"]),
        ("I love adventure stories", ["The Harbor Adventure", "Paprika"]),
        ("the best one", ["The Best of Friends", "Paprika"]),
        ("It sounds good", ["It", "Us"]),
        ("a greek place", ["Green", "Blue"]),
        ("southeast", ["Southwest", "Northwest"]),
        ("May 3rd", ["May 5th", "June 2nd"]),
        ("oat and smoked maple oat", MILKS),
        ("Paprika or Kagemusha", FILMS),
        ("is Paprika better than Kagemusha?", FILMS),
        ("which is shorter?", FILMS),
        ("Kagemusha any good?", FILMS),
        ("maybe, if Kagemusha is on late", FILMS),
        ("will Kagemusha be on late?", FILMS),
        ("I'd like to know how long Kagemusha is", FILMS),
        ("either Paprika or something else", FILMS),
        ("Paprika the second one", FILMS),
        ("I'd like adventure", ["The Harbor Adventure", "Paprika"]),
        ("I have a wedding", ["After the Wedding", "Paprika"]),
        ("Upper Stone Quarry", CINEMAS),
        ("Coralville please", AIRLINES),
        ("weather", ["Feather", "Stone"]),
        ("this", ["This Is It", "Paprika"]),
        ("3 of us are coming", ["3", "2", "1"]),
        ("I've already seen Paprika", FILMS),
        ("Yes I have already seen Paprika", FILMS),
        ("I've seen Paprika. I want one like that", FILMS),
        ("Is there anything by Jane Campion?", FILMS),
        ("who directed Kagemusha?", FILMS),
        ("are there any parking lots near Kagemusha", FILMS),
        ("it's cold this winter", FILMS),
        ("my lantern broke", FILMS),
        ("I want to watch something with my family", REUNION),
        ("I want to take my kids to a PG movie", RATED),
        ("What theaters have Rust?", RATED),
        ("Something like Korean barbecue?", CUISINES),
        ("There are 3 of us", RIDES),
        ("my card", PAYMENTS),
        ("With a different card", PAYMENTS),
        ("a doctor please", DOCTORS),
        ("I have a problem with my eyes", DOCTORS),
        ("I'm allergic to cinnamon", TOPPINGS),
        ("no thanks, just the latte", TOPPINGS),
        ("peppermint and cinnamon", TOPPINGS),
    ],
)
def test_what_is_like_a_name_but_means_something_else_chooses_nothing(reply: str, options: list[Option]) -> None:
    assert choose(reply, options) is None


@pytest.mark.parametrize(
    ("reply", "options", "chosen"),
    [
        ("not the first one", TWO, 1),
        ("not Paprika", TWO, 1),
        ("not Paprika?", TWO, None),
        ("not Paprika but Kagemusha", FILMS, 1),
        ("Paprika instead of that", TWO, 0),
        ("Iron Lantern: Winter Road is not what I want", FILMS, None),
        ("anything but Paprika", TWO, 1),
        ("not the first one", FILMS, None),
        ("not the first one, the third", FILMS, 2),
        ("Paprika, not Kagemusha", TWO, 0),
        ("Paprika instead of Kagemusha", TWO, 0),
        ("Kagemusha rather than Paprika", TWO, 1),
        ("I don't want Paprika", TWO, None),
        ("I don't like Paprika. Anything else?", TWO, None),
        ("no Paprika", TWO, None),
        ("Paprika is not what I want", TWO, None),
        ("anything other than Paprika?", TWO, None),
        ("the former", TWO, 0),
        ("the latter", TWO, 1),
        ("the latter", FILMS, None),
        ("the middle one", TWO, None),
    ],
)
def test_a_rejected_option_leaves_the_only_other(reply: str, options: list[Option], chosen: int | None) -> None:
    assert choose(reply, options) == chosen


@pytest.mark.parametrize(
    "reply",
    ["the first, no wait, the third", "1. Actually, the third one", "2, I mean 3", "Paprika... sorry, the last one"],
)
def test_a_correction_counts_alone(reply: str) -> None:
    assert choose(reply, FILMS) == 2


@pytest.mark.parametrize(
    ("reply", "options", "chosen"),
    [
        ("7:30", TIMES, 1),
        ("the 7:30pm one", TIMES, 1),
        ("7.30", TIMES, 1),
        ("seven thirty", TIMES, 1),
        ("9:45 p.m. please", TIMES, 2),
        ("7 p.m.", ["6:00 PM", "7:00 PM", "9:00 PM"], 1),
        ("7:00", ["6 PM", "7 PM"], 1),
        ("the 6 o'clock", TIMES, 0),
        ("at 6", TIMES, 0),
        ("6", TIMES, 0),
        ("3 seats for the 7:30 show", TIMES, 1),
        ("2", TIMES, 1),
        ("$10", PRICES, 1),
        ("10", PRICES, 1),
        ("ten dollars", PRICES, 1),
        ("the $10 one", PRICES, 1),
        ("10 tickets", PRICES, None),
        ("2", PRICES, 1),
        ("3", ["3", "2", "1"], 0),
        ("the third one", ["3", "2", "1"], 2),
        ("the 5th of May", DATES, 0),
        ("on the 5th", DATES, 0),
        ("May 2nd", DATES, 1),
        ("may 5", DATES, 0),
        ("I'd like to depart on the 5th of May", DATES, 0),
        ("I will depart on 10th June", ["June 10th", "June 12th"], 0),
        ("I want to leave on the 5th and return on the 7th", DATES, 0),
        ("on the 5th of this month", DATES, 0),
        ("on the 5th of next month", DATES, None),
        ("on the 5th of June", DATES, None),
        ("on the 5th floor", DATES, None),
        ("4 tickets for the 7:30 pm showing", TIMES, 1),
        ("do you have something at 8:15", TIMES, None),
        ("how much are 2 tickets?", TIMES, None),
        ("May 3rd", DATES, None),
        ("the 2nd one", DATES, 1),
        ("the second one", ["May 2nd", "May 5th"], 1),
        ("the 2nd", ["May 2nd", "May 5th"], None),
        ("14", CINEMAS, 0),
        ("2", ["Part 2", "Part 1"], 1),
    ],
)
def test_options_that_are_numbers_are_meant_by_their_value(
    reply: str, options: list[Option], chosen: int | None
) -> None:
    assert choose(reply, options) == chosen


def test_equal_options_are_told_apart_by_place_only() -> None:
    assert choose("Shake Shack", ["Shake Shack", "Shake Shack"]) is None
    assert choose("the second Shake Shack", ["Shake Shack", "Shake Shack"]) == 1
    assert choose("2", ["Shake Shack", "Shake Shack"]) == 1


def test_ids_choose_nothing() -> None:
    options = [{"name": "Alpha", "id": "berry", "place_id": "cedar"}, {"name": "Omega"}]
    assert choose("berry", options) is None
    assert choose("cedar", options) is None


def test_what_is_no_short_text_or_number_is_no_attribute() -> None:
    options: list[Option] = [
        {"name": "Alpha", "open": True, "tags": ["berry"], "story": "cedar " * 30},
        {"name": "Omega"},
    ]
    assert choose("true", options) is None
    assert choose("berry", options) is None
    assert choose("cedar", options) is None


def test_no_options_are_never_chosen_from() -> None:
    assert choose("1", []) is None


def test_a_reply_that_is_too_long_to_be_an_answer_chooses_nothing() -> None:
    assert choose("Kagemusha" + " " * (MAX_LENGTH - 9), FILMS) == 1
    assert choose("Kagemusha" + " " * MAX_LENGTH, FILMS) is None


@given(st.text(max_size=200), st.lists(st.text(min_size=1, max_size=30) | st.just("Kagemusha"), max_size=8))
def test_any_text_is_read(reply: str, options: list[str]) -> None:
    chosen = choose(reply, options)
    assert chosen is None or 0 <= chosen < len(options)


@given(
    st.lists(st.sampled_from("the a 2 second one not no Paprika winter of , ? but and last for two $5 7:30".split()))
)
def test_any_mix_of_telling_words_is_read(words: list[str]) -> None:
    chosen = choose(" ".join(words), FILMS)
    assert chosen is None or 0 <= chosen < len(FILMS)


@given(st.integers(min_value=1, max_value=30))
def test_every_place_is_chosen_by_its_number(number: int) -> None:
    assert choose(str(number), THIRTY) == number - 1
    assert choose(f"option {number}", THIRTY) == number - 1


@pytest.mark.parametrize(
    "reply",
    [
        *("1 + 1", "1+1", "3 - 2", "4 / 2", "2 * 1", "2 = 2"),
        *("wait 2", "ok wait 1", "number one hit", "she is my number 1 fan", "I second that", "second this, thanks"),
        *("the two of us want Harajuku", "2 of them like Shibuya", "Ann says Harajuku", "everybody says Shibuya"),
        *("out of Shibuya", "we are out of the Harajuku", "I missed Shibuya", "they walked to Shinjuku"),
        *("see you in Shinjuku", "see ya Shibuya"),
    ],
)
def test_what_counts_waits_or_tells_chooses_nothing(reply: str) -> None:
    assert choose(reply, BURGERS) is None


@pytest.mark.parametrize(
    "reply",
    [
        *("wait, the second one", "no wait, 2", "1, no wait 2", "the second, that one", "second, that looks good"),
        *("I wanted Shinjuku", "I need Shinjuku", "I say Shinjuku", "out of these, Shinjuku", "go with Shinjuku"),
    ],
)
def test_what_is_near_to_counting_waiting_and_telling_still_chooses(reply: str) -> None:
    assert choose(reply, BURGERS) == 1


@pytest.mark.parametrize("reply", ["number one", "number 1 please", "let's do number one"])
def test_number_one_is_a_place(reply: str) -> None:
    assert choose(reply, BURGERS) == 0


@pytest.mark.parametrize(
    ("reply", "chosen"), [("I give up", None), ("let's go on", None), ("let's watch Up", 0), ("On", 1)]
)
def test_the_particle_of_a_verb_is_no_name(reply: str, chosen: int | None) -> None:
    assert choose(reply, ["Up", "On"]) == chosen


@pytest.mark.parametrize(("reply", "chosen"), [("2 + 1", 0), ("2 1", 0), ("9 - 10", 1), ("9 to 10", 1)])
def test_an_operator_may_be_part_of_a_name(reply: str, chosen: int) -> None:
    assert choose(reply, ["2 + 1", "9 - 10"]) == chosen
