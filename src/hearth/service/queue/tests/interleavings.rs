//! The queue under many schedules of its workers: run with `make interleavings`.

use std::sync::{Arc, Mutex as SystemMutex};

use super::*;
use base::ids::DeliveryId;
use base::sync::channel::{Receiver, Sender, bounded};
use base::sync::thread::{self, JoinHandle};
use base::testing::explore;

/// Longer than any scenario: what waits for its end instead of a wake-up hangs.
const LONG: Duration = Duration::from_secs(3600);

/// What the workers did. Its lock is no step for the scheduler.
#[derive(Default)]
struct Log {
    running: HashSet<ConversationId>,
    delivering: HashSet<DeliveryId>,
    /// Turns in the order in which they began.
    begun: Vec<(i64, i64)>,
    deliveries: Vec<i64>,
}

/// A queue, and where its workers report what has ended.
struct Scene {
    queue: WorkQueue,
    log: SystemMutex<Log>,
    ended: (Sender<i64>, Receiver<i64>),
}

impl Scene {
    fn new(workers: usize) -> Arc<Scene> {
        Arc::new(Scene {
            queue: WorkQueue::new(workers),
            log: SystemMutex::default(),
            ended: bounded(64),
        })
    }

    fn spawn(self: &Arc<Scene>, body: impl FnOnce(&Scene) + Send + 'static) -> JoinHandle<()> {
        let scene = Arc::clone(self);
        thread::spawn(move || body(&scene))
    }

    /// Starts workers that do with each turn what `run` does.
    fn workers(
        self: &Arc<Scene>,
        count: usize,
        run: impl Fn(&Scene, TurnJob, &Cancel) + Copy + Send + 'static,
    ) -> Vec<JoinHandle<()>> {
        let worker = |_| self.spawn(move |scene| scene.work(run));
        (0..count).map(worker).collect()
    }

    fn work(&self, run: impl Fn(&Scene, TurnJob, &Cancel)) {
        while let Some(job) = self.queue.next() {
            match job {
                Job::Turn(job, cancel) => {
                    let conversation = job.conversation;
                    let mut log = self.log.lock().unwrap();
                    assert!(log.running.insert(conversation), "two of {conversation}");
                    log.begun.push((conversation.as_i64(), job.turn.as_i64()));
                    drop(log);
                    thread::yield_now();
                    run(self, job, &cancel);
                }
                Job::Outgoing(due) => {
                    let Outgoing::Callback(delivery) = due.outgoing else {
                        panic!("{due:?} is none of the callbacks")
                    };
                    let mut log = self.log.lock().unwrap();
                    assert!(log.delivering.insert(delivery), "{delivery} twice at once");
                    log.deliveries.push(delivery.as_i64());
                    drop(log);
                    thread::yield_now();
                    self.log.lock().unwrap().delivering.remove(&delivery);
                    let reach = Some(Reach::Answered);
                    self.queue.attempt_ended(&due, reach, NOW);
                    self.ended.0.send(-delivery.as_i64()).unwrap();
                }
            }
        }
    }

    /// Ends a turn as a worker does.
    fn end(&self, turn: TurnId, conversation: ConversationId) {
        self.stopped_running(conversation);
        self.queue.turn_ended(turn, conversation);
        self.ended.0.send(turn.as_i64()).unwrap();
    }

    fn stopped_running(&self, conversation: ConversationId) {
        self.log.lock().unwrap().running.remove(&conversation);
    }

    /// Waits until so many turns and deliveries have ended: a wake-up that is lost
    /// leaves everybody waiting.
    fn await_ends(&self, count: usize) {
        for _ in 0..count {
            self.ended.1.recv().unwrap();
        }
    }

    fn begun_in(&self, conversation: i64) -> Vec<i64> {
        let log = self.log.lock().unwrap();
        let of = log.begun.iter().filter(|(known, _)| *known == conversation);
        of.map(|(_, turn)| *turn).collect()
    }

    /// Stops the queue and joins its workers. Nothing may be left.
    fn stop(&self, workers: Vec<JoinHandle<()>>) {
        self.queue.stop(LONG);
        join(workers);
        let load = Load {
            running: 0,
            waiting: 0,
            due_deliveries: 0,
        };
        assert_eq!(self.queue.load(), load);
    }
}

fn join(threads: Vec<JoinHandle<()>>) {
    for thread in threads {
        thread.join().unwrap();
    }
}

fn end_at_once(scene: &Scene, job: TurnJob, _: &Cancel) {
    scene.end(job.turn, job.conversation);
}

#[test]
fn turns_run_in_order_one_at_a_time_and_none_is_left() {
    explore("queue: order of turns", || {
        let scene = Scene::new(3);
        let workers = scene.workers(3, end_at_once);
        let callers = vec![
            scene.spawn(|scene| {
                for turn in [11, 12, 13] {
                    scene.queue.submit(job(turn, 1));
                }
            }),
            scene.spawn(|scene| {
                for turn in [21, 22] {
                    scene.queue.submit(job(turn, 2));
                }
            }),
            scene.spawn(|scene| {
                scene.queue.offer([due(1), due(2)], NOW);
                scene.queue.offer([due(3)], NOW);
            }),
        ];
        scene.await_ends(8);
        join(callers);
        scene.stop(workers);
        assert_eq!(scene.begun_in(1), [11, 12, 13]);
        assert_eq!(scene.begun_in(2), [21, 22]);
        let mut deliveries = std::mem::take(&mut scene.log.lock().unwrap().deliveries);
        deliveries.sort();
        assert_eq!(deliveries, [1, 2, 3]);
    });
}

#[test]
fn every_receiver_gets_what_is_due_to_it() {
    explore("queue: receivers", || {
        let scene = Scene::new(4);
        let workers = scene.workers(4, end_at_once);
        let callers = vec![
            scene.spawn(|scene| scene.queue.offer([due(1), due(2), due(3), due(4)], NOW)),
            scene.spawn(|scene| {
                scene.queue.offer([due_to("there", 5), due(6)], NOW);
                scene.queue.submit(job(11, 1));
            }),
        ];
        scene.await_ends(7);
        join(callers);
        scene.stop(workers);
    });
}

/// Suspends the turns `asking` once, each at its first run, and ends the others.
fn suspending(
    scene: &Arc<Scene>,
    workers: usize,
    asking: &'static [i64],
) -> (Vec<JoinHandle<()>>, Receiver<TurnId>) {
    let (ask, asked) = bounded(8);
    let ask = Arc::new(ask);
    let worker = |_| {
        let ask = Arc::clone(&ask);
        scene.spawn(move |scene| {
            scene.work(|scene, job, _| {
                let (turn, conversation) = (job.turn, job.conversation);
                let runs = scene.begun_in(conversation.as_i64());
                let runs = runs.iter().filter(|one| **one == turn.as_i64()).count();
                if !asking.contains(&turn.as_i64()) || runs > 1 {
                    return scene.end(turn, conversation);
                }
                ask.send(turn).unwrap();
                scene.stopped_running(conversation);
                if !scene.queue.turn_suspended(turn, conversation) {
                    scene.end(turn, conversation);
                }
            });
        })
    };
    ((0..workers).map(worker).collect(), asked)
}

#[test]
fn a_decision_at_any_moment_resumes_the_turn_and_holds_nobody_up() {
    explore("queue: suspended turns", || {
        let scene = Scene::new(2);
        let (workers, asked) = suspending(&scene, 2, &[11, 12]);
        let others = vec![
            scene.spawn(move |scene| {
                for _ in 0..2 {
                    let turn = asked.recv().unwrap();
                    scene.queue.resume(turn, 1.into());
                }
            }),
            scene.spawn(|scene| scene.queue.submit(job(21, 2))),
        ];
        for turn in [11, 12, 13] {
            scene.queue.submit(job(turn, 1));
        }
        scene.await_ends(4);
        join(others);
        scene.stop(workers);
        let begun = scene.begun_in(1);
        let first = |turn| begun.iter().position(|one| *one == turn);
        assert!(first(11) < first(12) && first(12) < first(13), "{begun:?}");
        let mut runs = begun.clone();
        runs.sort();
        assert_eq!(runs, [11, 11, 12, 12, 13]);
    });
}

#[test]
fn nobody_waits_for_a_turn_that_is_not_decided() {
    explore("queue: undecided turns", || {
        let scene = Scene::new(1);
        let (workers, asked) = suspending(&scene, 1, &[11]);
        for turn in [11, 12, 13] {
            scene.queue.submit(job(turn, 1));
        }
        scene.await_ends(2);
        assert_eq!(asked.recv().unwrap(), TurnId::from(11));
        assert_eq!(scene.begun_in(1), [11, 12, 13]);
        scene.queue.resume(11.into(), 1.into());
        scene.await_ends(1);
        scene.stop(workers);
        assert_eq!(scene.begun_in(1), [11, 12, 13, 11]);
    });
}

/// A turn that waits for a person is decided and cancelled at once, while the next one
/// runs: it ends once, by whoever was first, and the next one runs in any case.
#[test]
fn a_suspended_turn_that_is_cancelled_ends_once() {
    explore("queue: suspended and cancelled", || {
        let scene = Scene::new(2);
        let (workers, asked) = suspending(&scene, 2, &[11]);
        let decided = scene.spawn(move |scene| {
            // If it never ran, nobody is asked.
            if let Ok(turn) = asked.recv() {
                scene.queue.resume(turn, 1.into());
            }
        });
        let cancelled = scene.spawn(|scene| {
            let runs = || {
                let begun = scene.begun_in(1);
                begun.iter().filter(|one| **one == 11).count()
            };
            match scene.queue.withdraw(11.into(), 1.into()) {
                // The caller ends it; it must not run from now on.
                Withdrawn::Taken => {
                    let before = runs();
                    scene.ended.0.send(11).unwrap();
                    thread::yield_now();
                    assert_eq!(runs(), before);
                }
                // Its worker ends it, or did, or it is not there yet.
                Withdrawn::Signalled | Withdrawn::Unknown => {}
            }
        });
        for turn in [11, 12] {
            scene.queue.submit(job(turn, 1));
        }
        scene.await_ends(2);
        cancelled.join().unwrap();
        scene.stop(workers);
        decided.join().unwrap();
        let runs = scene.begun_in(1);
        assert_eq!(runs.iter().filter(|one| **one == 12).count(), 1);
        assert!(!scene.queue.has_suspended());
    });
}

#[test]
fn a_withdrawn_turn_does_not_run_and_the_next_one_does() {
    explore("queue: withdrawn turns", || {
        let scene = Scene::new(2);
        let workers = scene.workers(2, |scene, job, cancel| {
            // The last one runs until it is withdrawn.
            if job.turn.as_i64() == 13 {
                assert!(cancel.wait(LONG));
            }
            scene.end(job.turn, job.conversation);
        });
        for turn in [11, 12, 13] {
            scene.queue.submit(job(turn, 1));
        }
        let withdraw = |turn: i64| {
            scene.spawn(
                move |scene| match scene.queue.withdraw(turn.into(), 1.into()) {
                    // The caller ends it; it must not run as well.
                    Withdrawn::Taken => {
                        assert!(!scene.begun_in(1).contains(&turn));
                        scene.ended.0.send(turn).unwrap();
                        thread::yield_now();
                        assert!(!scene.begun_in(1).contains(&turn));
                    }
                    Withdrawn::Signalled | Withdrawn::Unknown => {
                        assert!(scene.begun_in(1).contains(&turn));
                    }
                },
            )
        };
        let callers = [11, 12, 13].map(withdraw);
        scene.await_ends(3);
        join(callers.into());
        scene.stop(workers);
        assert!(scene.begun_in(1).is_sorted());
    });
}

#[test]
fn whoever_learns_of_a_turn_can_withdraw_it() {
    explore("queue: announced turns", || {
        let scene = Scene::new(1);
        let workers = scene.workers(1, |scene, job, cancel| {
            assert!(cancel.wait(LONG));
            scene.end(job.turn, job.conversation);
        });
        let (tell, told) = bounded(1);
        let caller = scene.spawn(move |scene| {
            told.recv().unwrap();
            match scene.queue.withdraw(11.into(), 1.into()) {
                Withdrawn::Taken => scene.ended.0.send(11).unwrap(),
                Withdrawn::Signalled => {}
                Withdrawn::Unknown => panic!("announced too early"),
            }
        });
        scene.queue.announce(job(11, 1), || tell.send(()).unwrap());
        scene.await_ends(1);
        caller.join().unwrap();
        scene.stop(workers);
    });
}

#[test]
fn no_more_wait_than_the_limits_allow() {
    explore("queue: limits", || {
        let scene = Scene::new(2);
        let limits = limits(2, 1);
        let accepted = Arc::new(SystemMutex::new(0));
        let callers = [11, 12, 13].map(|turn| {
            let (limits, accepted) = (limits.clone(), Arc::clone(&accepted));
            scene.spawn(move |scene| {
                let Ok(place) = scene.queue.reserve(Some(1.into()), person(1, 1), &limits) else {
                    return;
                };
                assert!(scene.queue.load().waiting <= 4, "each may count twice");
                scene.queue.submit(job(turn, 1));
                drop(place);
                *accepted.lock().unwrap() += 1;
            })
        });
        join(callers.into());
        let accepted = *accepted.lock().unwrap();
        // One may be ready to run; only one more may wait behind it.
        assert!((1..=2).contains(&accepted), "{accepted}");
        assert_eq!(scene.queue.load().waiting, accepted);
        let workers = scene.workers(2, end_at_once);
        scene.await_ends(accepted);
        // Every place was given back.
        let place = scene.queue.reserve(Some(1.into()), person(1, 1), &limits);
        let other = scene.queue.reserve(None, person(1, 1), &limits);
        assert!(place.is_ok() && other.is_ok());
        drop((place, other));
        scene.stop(workers);
    });
}

#[test]
fn stopping_waits_for_what_runs_and_starts_nothing() {
    explore("queue: stop", || {
        let scene = Scene::new(2);
        let workers = scene.workers(2, end_at_once);
        let callers = vec![
            scene.spawn(|scene| {
                for turn in [11, 12] {
                    scene.queue.submit(job(turn, 1));
                }
            }),
            scene.spawn(|scene| {
                scene.queue.submit(job(21, 2));
                scene.queue.offer([due(1)], NOW);
            }),
        ];
        let other = scene.spawn(|scene| scene.queue.stop(LONG));
        scene.queue.stop(LONG);
        let begun = scene.log.lock().unwrap().begun.clone();
        assert_eq!(scene.queue.load().running, 0);
        assert!(scene.log.lock().unwrap().running.is_empty());
        join(callers);
        join(workers);
        other.join().unwrap();
        assert_eq!(
            scene.log.lock().unwrap().begun,
            begun,
            "begun after the stop"
        );
        assert!(
            (scene.queue)
                .reserve(None, person(1, 1), &Limits::default())
                .is_err()
        );
    });
}

#[test]
fn stopping_without_grace_cancels_what_runs() {
    explore("queue: stop without grace", || {
        let scene = Scene::new(2);
        let workers = scene.workers(2, |scene, job, cancel| {
            assert!(cancel.wait(LONG));
            scene.end(job.turn, job.conversation);
        });
        let callers = vec![
            scene.spawn(|scene| scene.queue.submit(job(11, 1))),
            scene.spawn(|scene| scene.queue.submit(job(21, 2))),
        ];
        // As the server does at the second signal, while the first is obeyed.
        let stop = scene.spawn(|scene| scene.queue.stop(LONG));
        scene.queue.stop(Duration::ZERO);
        join(workers);
        join(callers);
        stop.join().unwrap();
        assert_eq!(scene.queue.load().running, 0);
    });
}
