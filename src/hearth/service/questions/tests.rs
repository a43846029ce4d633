use std::time::Duration;

use super::*;

fn accepted() -> Answer {
    Answer::Accepted(serde_json::Map::new())
}

#[test]
fn a_person_and_all_together_have_so_much_room() {
    let questions = Questions::default();
    let (ann, bob) = (UserId::from(1), UserId::from(2));
    for _ in 0..MOST {
        assert!(questions.reserve(ann, 6));
    }
    assert!(!questions.reserve(ann, 6), "that is all for one person");
    assert!(questions.reserve(bob, 6) && questions.reserve(bob, 6));
    assert!(!questions.reserve(bob, 6), "and that for all");
    questions.release(ann);
    assert!(questions.reserve(bob, 6));
    questions.stop();
    questions.release(ann);
    assert!(!questions.reserve(ann, 6), "the server stops");
}

#[test]
fn the_first_answer_counts_and_time_ends_the_wait() {
    let questions = Questions::default();
    let id = ApprovalId::from(1);
    let now = Instant::now();
    assert_eq!(questions.wait(id, now), None, "it was never open");
    questions.open(id);
    assert_eq!(questions.wait(id, now), None);
    questions.answer(id, accepted());
    questions.answer(id, Answer::Dismissed);
    assert!(!questions.is_open(id));
    assert_eq!(questions.wait(id, now), Some(accepted()));
    questions.close(id);
    questions.stop();
    questions.open(id);
    let soon = Instant::now() + Duration::from_secs(60);
    assert_eq!(questions.wait(id, soon), Some(Answer::Dismissed));
}

#[cfg(feature = "shuttle")]
mod interleavings {
    use std::sync::Arc;

    use super::*;
    use base::sync::thread;
    use base::testing::explore;

    /// No answer, withdrawal or stop is missed by the thread that waits.
    #[test]
    fn a_wait_ends_with_whatever_comes_first() {
        explore("questions", || {
            let questions = Arc::new(Questions::default());
            let id = ApprovalId::from(1);
            questions.open(id);
            let others: [fn(&Questions, ApprovalId); 3] = [
                |questions, id| questions.answer(id, accepted()),
                |questions, id| questions.answer(id, Answer::Declined),
                |questions, _| questions.stop(),
            ];
            let others = others.map(|act| {
                let questions = Arc::clone(&questions);
                thread::spawn(move || act(&questions, id))
            });
            let late = Instant::now() + Duration::from_secs(3600);
            let answer = questions.wait(id, late).expect("something came");
            for other in others {
                other.join().unwrap();
            }
            assert_eq!(questions.wait(id, late), Some(answer));
        });
    }
}
