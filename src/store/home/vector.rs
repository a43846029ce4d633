//! What texts mean, in numbers that a model has made of them: vectors, of which two
//! point in about the same direction if their texts say about the same.

use std::ops::ControlFlow;

use rusqlite::{Connection, params};

use crate::engine::failure::Outcome;
use crate::engine::query::Statements;
use base::ids::MemoryId;

/// Most numbers of a vector: 10,000 of them take 6 MB of the database.
pub const MOST_DIMENSIONS: usize = 512;

/// The least number of texts of which it can be said what stands out.
const LEAST: usize = 8;
/// How far a memory stands out that is near, in standard deviations from what all have in
/// common with the message.
const STANDING_OUT: f64 = 2.5;

/// A direction: numbers of one byte each, and their length together. The default has
/// none, and is near to nothing.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Vector {
    length: f32,
    numbers: Vec<i8>,
}

impl Vector {
    /// The beginning of a vector of a model. Numbers of one byte are enough to compare
    /// directions. None of one that has no direction.
    pub fn of(numbers: &[f32], dimensions: usize) -> Option<Vector> {
        let numbers = &numbers[..numbers.len().min(dimensions).min(MOST_DIMENSIONS)];
        let largest = numbers
            .iter()
            .fold(0f32, |most, number| most.max(number.abs()));
        if !largest.is_finite() || largest <= 0.0 {
            return None;
        }
        let small = |number: &f32| (number / largest * 127.0).round() as i8;
        let numbers: Vec<i8> = numbers.iter().map(small).collect();
        let length = (product(&numbers, &numbers, |number| number) as f32).sqrt();
        Some(Vector { length, numbers })
    }

    /// As [`nearest`] reads it.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = self.length.to_le_bytes().to_vec();
        bytes.extend(self.numbers.iter().map(|number| number.cast_unsigned()));
        bytes
    }

    /// From -1 to 1, the same direction; none where the other one is not of the same
    /// model.
    pub(crate) fn likeness(&self, bytes: &[u8]) -> Option<f64> {
        let (length, numbers) = bytes.split_first_chunk::<4>()?;
        if numbers.len() != self.numbers.len() {
            return None;
        }
        let lengths = f64::from(self.length) * f64::from(f32::from_le_bytes(*length));
        let product = product(&self.numbers, numbers, u8::cast_signed);
        Some(f64::from(product) / lengths)
    }
}

/// Four at a time: with optimisation for size, one at a time takes twice as long.
fn product<T: Copy>(one: &[i8], other: &[T], number: impl Fn(T) -> i8) -> i32 {
    let times = |one: i8, other: T| i32::from(one) * i32::from(number(other));
    let (ones, last_ones) = one.as_chunks::<4>();
    let (others, last_others) = other.as_chunks::<4>();
    let mut sum = 0;
    for ([a, b, c, d], [e, f, g, h]) in ones.iter().zip(others) {
        sum += times(*a, *e) + times(*b, *f) + times(*c, *g) + times(*d, *h);
    }
    let last = last_ones.iter().zip(last_others);
    sum + last.map(|(one, other)| times(*one, *other)).sum::<i32>()
}

/// Which of these memories, oldest first, stand out as near to a vector, the nearest
/// first, at most `limit`; by place.
pub(crate) fn nearest(
    connection: &Connection,
    vector: &Vector,
    memories: &[MemoryId],
    limit: usize,
) -> Outcome<Vec<usize>> {
    let mut found: Vec<(usize, f64)> = Vec::with_capacity(memories.len());
    let mut place = 0;
    connection.each_row(VECTORS, params![], &mut |row| {
        let memory: MemoryId = row.get(0)?;
        while memories.get(place).is_some_and(|known| *known < memory) {
            place += 1;
        }
        if memories.get(place) == Some(&memory)
            && let Some(likeness) = vector.likeness(row.get_ref(1)?.as_blob()?)
        {
            found.push((place, likeness));
        }
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(standing_out(found, STANDING_OUT, limit))
}

/// What is nearer than usual by so many standard deviations, the nearest first, at most `limit`:
/// how near is near differs from model to model.
pub(crate) fn standing_out<T>(mut found: Vec<(T, f64)>, deviations: f64, limit: usize) -> Vec<T> {
    if found.len() < LEAST {
        return Vec::new();
    }
    let count = found.len() as f64;
    let mean = found.iter().map(|(_, likeness)| likeness).sum::<f64>() / count;
    let squares = found.iter().map(|(_, likeness)| (likeness - mean).powi(2));
    let deviation = (squares.sum::<f64>() / count).sqrt();
    found.retain(|(_, likeness)| *likeness - mean > deviations * deviation);
    found.sort_unstable_by(|one, other| other.1.total_cmp(&one.1));
    found.truncate(limit);
    found.into_iter().map(|(one, _)| one).collect()
}

const VECTORS: &str = "SELECT memory_id, vector FROM memory_vectors ORDER BY memory_id";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_one_byte_keep_the_direction() {
        let one = Vector::of(&[0.3, -0.1, 0.2, 9.0], 3).unwrap();
        let likeness = |numbers: &[f32]| {
            let other = Vector::of(numbers, 3).unwrap();
            one.likeness(&other.to_bytes()).unwrap()
        };
        assert!(likeness(&[3.0, -1.0, 2.0]) > 0.999);
        assert!(likeness(&[-0.3, 0.1, -0.2]) < -0.999);
        assert!(likeness(&[0.1, 0.3, 0.0]).abs() < 0.01);
        assert_eq!(Vector::of(&[0.0, 0.0], 2), None);
        assert_eq!(Vector::of(&[f32::NAN, f32::INFINITY], 2), None);
        // Of a model with fewer dimensions.
        let short = Vector::of(&[1.0, 0.0], 3).unwrap();
        assert_eq!(one.likeness(&short.to_bytes()), None);
        assert_eq!(one.likeness(&[1, 2]), None);
    }
}
