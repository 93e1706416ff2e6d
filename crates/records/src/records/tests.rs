use super::*;
use std::io::Cursor;

fn open(text: String) -> Records {
    let input = Input::Stdin(Box::new(Cursor::new(text.into_bytes())));
    Records::open(input, &Options::default(), &mut |_| {}).unwrap()
}

fn numbered(count: u64) -> Records {
    open((0..count).map(|n| format!("{{\"n\":{n}}}\n")).collect())
}

#[test]
fn a_read_goes_on_where_an_earlier_one_ended() {
    let records = numbered(20_000);
    for lo in (0..19_990).step_by(10) {
        assert_eq!(records.nearest(lo).index, lo);
        records.read(lo..lo + 10).unwrap();
    }
}

#[test]
fn readers_of_different_parts_do_not_disturb_each_other() {
    let records = numbered(20_000);
    let mut readers: Vec<u64> = (0..200).map(|reader| reader * 100).collect();
    for round in 0..9 {
        for lo in &mut readers {
            assert!(round == 0 || records.nearest(*lo).index == *lo);
            records.read(*lo..*lo + 10).unwrap();
            *lo += 10;
        }
    }
}

#[test]
fn a_point_that_is_no_boundary_any_more_shows_a_change() {
    let records = numbered(100);
    for point in [Point { index: 1, offset: 5, line: 2 }, Point { index: 1, offset: 9999, line: 2 }]
    {
        let error = records.read_from(point, 1..2).unwrap_err();
        assert!(matches!(error, RecordsError::Changed { .. }), "{error}");
    }
    let array = open("[{},{},{}]".to_owned());
    let error = array.read_from(Point { index: 1, offset: 2, line: 1 }, 1..2).unwrap_err();
    assert!(matches!(error, RecordsError::Changed { .. }), "{error}");
}

#[test]
fn any_thread_may_read() {
    fn shared<T: Send + Sync>() {}
    shared::<Records>();
}
