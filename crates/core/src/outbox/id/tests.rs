use super::*;
use proptest::prelude::*;

/// Also such that look like numbers, almost.
fn texts() -> impl Strategy<Value = String> {
    prop_oneof!["[-+]?0{0,2}[0-9]{0,20}", "[0-9a-z-]{1,8}", ".{1,12}"]
        .prop_filter("no message has an empty id", |text| !text.is_empty())
}

fn numbers() -> impl Strategy<Value = i64> {
    prop_oneof![any::<i64>(), -9..10_i64, Just(i64::MAX), Just(i64::MIN)]
}

fn ids() -> impl Strategy<Value = MessageId> {
    prop_oneof![numbers().prop_map(MessageId::number), texts().prop_map(MessageId::text)]
}

/// Digits as people write a number that fits: found without parsing.
fn is_canonical(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let limit = if text.starts_with('-') { "9223372036854775808" } else { "9223372036854775807" };
    let is_short = (digits.len(), digits) <= (limit.len(), limit);
    let begins = digits.starts_with(|c: char| ('1'..='9').contains(&c));
    digits.bytes().all(|byte| byte.is_ascii_digit()) && is_short && (begins || text == "0")
}

proptest! {
    #[test]
    fn what_is_displayed_is_read_back(id in ids()) {
        let shown = id.to_string();
        let read: MessageId = shown.parse().unwrap();
        match id.as_number().is_none() && is_canonical(&shown) {
            true => prop_assert_eq!(read.as_number().map(|it| it.to_string()), Some(shown)),
            false => prop_assert_eq!(read, id),
        }
    }

    #[test]
    fn whatever_is_typed_is_displayed_again(typed in texts()) {
        let id: MessageId = typed.parse().unwrap();
        prop_assert_eq!(id.to_string(), typed.clone());
        prop_assert_eq!(id.as_number().is_some(), is_canonical(&typed));
    }

    #[test]
    fn json_tells_numbers_from_texts(id in ids()) {
        let json = serde_json::to_value(&id).unwrap();
        prop_assert_eq!(json.as_i64(), id.as_number());
        prop_assert_eq!(serde_json::from_value::<MessageId>(json).unwrap(), id);
    }

    #[test]
    fn numbers_come_before_texts(numbers in [numbers(), numbers()], texts in [texts(), texts()]) {
        let [one, other] = numbers.map(MessageId::number);
        prop_assert_eq!(one.cmp(&other), numbers[0].cmp(&numbers[1]));
        let [name, another] = texts.clone().map(MessageId::text);
        prop_assert_eq!(name.cmp(&another), texts[0].as_bytes().cmp(texts[1].as_bytes()));
        prop_assert!(one < name && name > other);
    }
}

#[test]
fn only_digits_without_ornament_are_a_number() {
    for number in ["0", "7", "-7", "4711", "9223372036854775807", "-9223372036854775808"] {
        assert_eq!(number.parse::<MessageId>().unwrap().as_number(), number.parse().ok());
    }
    for text in ["007", "+7", "-0", "9223372036854775808", "1e3", " 7", "7 ", "a-7", "-", "٧"] {
        assert_eq!(text.parse(), Ok(MessageId::text(text)));
    }
    assert_eq!("".parse::<MessageId>(), Err(EmptyId));
}

#[test]
fn a_store_that_numbers_messages_finds_no_text() {
    let ids = [MessageId::text("a"), MessageId::number(3), MessageId::text("3")];
    assert_eq!(MessageId::numbers(&ids), [3]);
    let before = |id| MessageId::number_before(Some(id));
    assert_eq!((before(&ids[0]), before(&ids[1])), (i64::MAX, 3));
    assert_eq!(MessageId::number_before(None), 0);
}

/// Hundreds of thousands pass through a relay in a second.
#[test]
fn an_id_is_no_larger_than_a_text() {
    assert_eq!(size_of::<MessageId>(), size_of::<Arc<str>>());
    assert_eq!(MessageId::from(Position(5)), MessageId::number(5));
}
