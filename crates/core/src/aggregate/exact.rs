//! Sums of floating-point numbers without rounding.

use serde::{Deserialize, Serialize};

/// Bits per digit.
const WIDTH: u32 = 32;
/// Digits that hold every finite `f64` (2098 bits) and the carries of 2⁶⁴ additions.
const DIGITS: usize = 69;
/// Additions before a digit of an `i64` could overflow.
const SPILL: u32 = 1 << 30;
/// The lowest bit stands for 2⁻¹⁰⁷⁴, the smallest `f64`.
const LOWEST: i32 = -1074;

/// An integer multiple of 2⁻¹⁰⁷⁴, wide enough for any sum of `f64`. Adding is associative and
/// commutative, which floating-point addition is not.
#[derive(Clone, Debug)]
pub struct ExactSum {
    /// Little-endian; each digit may exceed its width until carries are moved up.
    digits: [i64; DIGITS],
    unsettled: u32,
    /// A number too large for `f64` was added: the sum has no value any more.
    overflowed: bool,
}

impl Default for ExactSum {
    fn default() -> Self {
        Self { digits: [0; DIGITS], unsettled: 0, overflowed: false }
    }
}

impl PartialEq for ExactSum {
    fn eq(&self, other: &Self) -> bool {
        self.overflowed == other.overflowed && self.settled().digits == other.settled().digits
    }
}

impl ExactSum {
    /// Adds a number.
    pub fn add(&mut self, value: f64) {
        if !value.is_finite() {
            self.overflowed = true;
            return;
        }
        let bits = value.to_bits();
        let exponent = (bits >> 52) as usize & 0x7ff;
        let fraction = bits & ((1 << 52) - 1);
        let (mantissa, shift) =
            if exponent == 0 { (fraction, 0) } else { (fraction | 1 << 52, exponent - 1) };
        let wide = u128::from(mantissa) << (shift % WIDTH as usize);
        let sign = if bits >> 63 == 0 { 1 } else { -1 };
        for (step, digit) in self.digits[shift / WIDTH as usize..].iter_mut().take(3).enumerate() {
            *digit += sign * i64::from((wide >> (WIDTH * step as u32)) as u32);
        }
        self.unsettled += 1;
        if self.unsettled == SPILL {
            *self = self.settled();
        }
    }

    /// Adds the exact square of a number: its rounded square and the rounding error of that.
    pub fn add_square(&mut self, value: f64) {
        let square = value * value;
        self.add(square);
        if square.is_finite() {
            self.add(value.mul_add(value, -square));
        }
    }

    /// Adds all numbers of another sum.
    pub fn merge(&mut self, other: &ExactSum) {
        *self = self.settled();
        let other = other.settled();
        self.digits.iter_mut().zip(other.digits).for_each(|(mine, theirs)| *mine += theirs);
        self.unsettled = 1;
        self.overflowed |= other.overflowed;
    }

    /// The sum as the unevaluated sum of two `f64`: about 106 correct bits.
    pub fn value(&self) -> (f64, f64) {
        if self.overflowed {
            return (f64::NAN, f64::NAN);
        }
        let high = self.rounded();
        let mut rest = self.clone();
        rest.add(-high);
        (high, rest.rounded())
    }

    /// The same sum with every digit but the highest in `0..2³²`: the one canonical form.
    fn settled(&self) -> Self {
        let mut settled = self.clone();
        settled.unsettled = 0;
        for i in 0..DIGITS - 1 {
            let carry = settled.digits[i] >> WIDTH;
            settled.digits[i] -= carry << WIDTH;
            settled.digits[i + 1] += carry;
        }
        settled
    }

    /// The nearest `f64`.
    fn rounded(&self) -> f64 {
        let mut settled = self.settled();
        let negative = settled.digits[DIGITS - 1] < 0;
        if negative {
            settled.digits.iter_mut().for_each(|digit| *digit = -*digit);
            settled = settled.settled();
        }
        let digits = &settled.digits;
        let Some(top) = digits.iter().rposition(|digit| *digit != 0) else { return 0.0 };
        let low = top.saturating_sub(2);
        let mut head = digits[low..=top]
            .iter()
            .rev()
            .fold(0u128, |head, digit| (head << WIDTH) | *digit as u128);
        if digits[..low].iter().any(|digit| *digit != 0) {
            head |= 1; // below the rounding position: breaks ties the right way
        }
        let magnitude = scale(head as f64, LOWEST + (WIDTH as usize * low) as i32);
        if negative { -magnitude } else { magnitude }
    }
}

/// `value · 2^power`, in steps that stay within the exponents of `f64`.
fn scale(mut value: f64, mut power: i32) -> f64 {
    while power != 0 {
        let step = power.clamp(-1000, 1000);
        value *= f64::from_bits(((1023 + step) as u64) << 52);
        power -= step;
    }
    value
}

/// The stored form: the canonical digits without the zeros around them.
#[derive(Serialize, Deserialize)]
struct Stored {
    first: u8,
    digits: Vec<i64>,
    overflowed: bool,
}

impl Serialize for ExactSum {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let settled = self.settled();
        let first = settled.digits.iter().position(|digit| *digit != 0).unwrap_or(0);
        let end = settled.digits.iter().rposition(|digit| *digit != 0).map_or(first, |i| i + 1);
        let digits = settled.digits[first..end].to_vec();
        Stored { first: first as u8, digits, overflowed: self.overflowed }.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for ExactSum {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let stored = Stored::deserialize(deserializer)?;
        let mut sum = ExactSum { overflowed: stored.overflowed, ..ExactSum::default() };
        let first = usize::from(stored.first);
        sum.digits
            .get_mut(first..first + stored.digits.len())
            .ok_or_else(|| serde::de::Error::custom("more digits than a sum has"))?
            .copy_from_slice(&stored.digits);
        Ok(sum)
    }
}
