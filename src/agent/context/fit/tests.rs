use std::collections::VecDeque;

use super::*;
use crate::context::estimate::text_tokens;
use crate::context::testing::*;
use base::ids::TurnId;
use store::{Message, PastTurn, Role, Step, ToolCall};

fn round(id: &str, content: &str) -> Vec<Step> {
    vec![
        calls("", &[(id, "look")]),
        started(id),
        result(id, true, content),
    ]
}

fn turn(number: i64, words: usize, steps: Vec<Step>) -> PastTurn {
    let (question, answer) = (format!("q{number} "), "abc ".repeat(words));
    PastTurn {
        id: TurnId::from(number),
        ..past(&question, steps, Some(&answer))
    }
}

fn input<'a>(past: &'a [PastTurn], present: &'a Message, steps: &'a [Step]) -> PromptInput<'a> {
    PromptInput {
        system_prompt: "prompt",
        summary: None,
        memories: None,
        past,
        suspended: 0,
        turn: TurnId::from(1_000),
        present,
        steps,
        channel: "websocket",
        is_outside: false,
    }
}

fn budget(tokens: usize) -> TokenBudget {
    TokenBudget {
        tokens,
        result_chars: tokens.min(16_000),
        turns: 100,
    }
}

/// Fails unless every call has exactly one result, in order, before anything
/// else is said.
fn assert_paired(messages: &[ChatMessage]) {
    let mut open: VecDeque<&str> = VecDeque::new();
    for message in messages {
        match message {
            ChatMessage::ToolResult { call_id, .. } => {
                assert_eq!(
                    open.pop_front(),
                    Some(call_id.as_str()),
                    "an orphaned result"
                );
            }
            ChatMessage::Assistant { calls, .. } => {
                assert!(open.is_empty(), "an orphaned call");
                open.extend(calls.iter().map(|call| call.id.as_str()));
            }
            ChatMessage::User { .. } => assert!(open.is_empty(), "an orphaned call"),
        }
    }
    assert!(open.is_empty(), "an orphaned call");
}

fn results(messages: &[ChatMessage]) -> Vec<usize> {
    let sizes = messages.iter().filter_map(|message| match message {
        ChatMessage::ToolResult { content, .. } => Some(content.len()),
        _ => None,
    });
    sizes.collect()
}

#[test]
fn first_results_are_shortened_then_turns_go() {
    let turns: Vec<PastTurn> = (0..6)
        .map(|number| turn(number, 100, round("1", &"r ".repeat(500))))
        .collect();
    let now = asked("now");
    // A turn takes about 373 tokens, and 163 with its result in a line.
    for (tokens, left_out, shortened) in [
        (10_000, 0, 0),
        (2_900, 0, 0),
        (2_600, 0, 4),
        (1_900, 0, 4),
        (1_700, 4, 0),
        (1_000, 4, 0),
        (800, 5, 0),
        (300, 5, 0),
        (200, 6, 0),
    ] {
        let fitted = fit(&input(&turns, &now, &[]), 0, budget(tokens), false);
        let sizes = results(&fitted.context.messages);
        let short = sizes.iter().filter(|size| **size < 200).count();
        assert_eq!(
            (fitted.left_out, short),
            (left_out, shortened),
            "{tokens}: {} {sizes:?}",
            fitted.tokens
        );
        assert!(fitted.tokens <= tokens);
        assert_paired(&fitted.context.messages);
    }
}

#[test]
fn with_the_whole_budget_more_is_shown() {
    let turns: Vec<PastTurn> = (0..20).map(|number| turn(number, 100, vec![])).collect();
    let now = asked("now");
    let input = input(&turns, &now, &[]);
    let usual = fit(&input, 0, budget(1_000), false);
    let brim = fit(&input, 0, budget(1_000), true);
    assert_eq!((usual.left_out, brim.left_out), (16, 11));
    assert!(usual.tokens <= 450 && brim.tokens <= 1_000);
}

#[test]
fn of_too_many_turns_half_go() {
    let turns: Vec<PastTurn> = (0..101).map(|number| turn(number, 1, vec![])).collect();
    let now = asked("now");
    let all = fit(&input(&turns[1..], &now, &[]), 0, budget(100_000), false);
    assert_eq!(all.left_out, 0);
    let fewer = fit(&input(&turns, &now, &[]), 0, budget(100_000), false);
    assert_eq!(fewer.left_out, 51);
}

#[test]
fn the_tools_and_what_is_added_take_their_room() {
    let turns: Vec<PastTurn> = (0..4).map(|number| turn(number, 100, vec![])).collect();
    let now = asked("now");
    let plain = input(&turns, &now, &[]);
    let left_out = |input: &PromptInput<'_>, tools| fit(input, tools, budget(800), false).left_out;
    assert_eq!(left_out(&plain, 0), 0);
    assert!(left_out(&plain, 400) > 0);
    let text = "abc ".repeat(400);
    let summary = PromptInput {
        summary: Some(&text),
        ..plain
    };
    let memories = PromptInput {
        memories: Some(&text),
        ..plain
    };
    assert!(left_out(&summary, 0) > 0 && left_out(&memories, 0) > 0);
}

#[test]
fn a_present_turn_that_is_too_long_keeps_its_words_and_its_newest_results() {
    let now = asked(&"what a person said ".repeat(20));
    let steps: Vec<Step> = (0..5)
        .flat_map(|number| round(&number.to_string(), &"result ".repeat(600)))
        .collect();
    for (tokens, expected) in [
        (20_000, vec![4_200; 5]),
        (4_000, vec![150, 150, 150, 150, 4_000]),
    ] {
        let fitted = fit(&input(&[], &now, &steps), 0, budget(tokens), false);
        let messages = &fitted.context.messages;
        assert_paired(messages);
        let sizes = results(messages);
        assert_eq!(sizes.len(), 5);
        assert!(fitted.tokens <= tokens, "{tokens}: {}", fitted.tokens);
        for (size, expected) in sizes.iter().zip(&expected) {
            assert!(size.abs_diff(*expected) < 50, "{tokens}: {sizes:?}");
        }
        assert!(matches!(
            &messages[0],
            ChatMessage::User { text } if *text == now.content
        ));
    }
    let tight = fit(&input(&[], &now, &steps), 0, budget(600), false);
    assert!(tight.tokens <= 600, "{}", tight.tokens);
}

/// A sequence of numbers that is the same in every run (xorshift64*).
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % limit
    }

    fn text(&mut self, longest: usize) -> String {
        let word = ["word ", "größe ", "слово ", "言葉", "\n"][self.below(5)];
        word.repeat(self.below(longest / word.len() + 1))
    }

    fn steps(&mut self, rounds: usize, longest: usize) -> Vec<Step> {
        let mut steps = Vec::new();
        for round in 0..self.below(rounds + 1) {
            let count = self.below(4);
            let calls: Vec<ToolCall> = (0..count)
                .map(|place| ToolCall {
                    id: format!("{round}-{place}"),
                    provider_id: None,
                    tool: "look".to_owned(),
                    arguments: format!("{{\"at\":\"{}\"}}", "x".repeat(self.below(40))),
                    extra: None,
                })
                .collect();
            let ids: Vec<String> = calls.iter().map(|call| call.id.clone()).collect();
            steps.push(Step::Reply {
                text: self.text(40),
                calls,
                extra: None,
            });
            // Some results are missing, as after a crash.
            for call_id in ids {
                steps.push(Step::Started {
                    call_id: call_id.clone(),
                });
                if self.below(8) > 0 {
                    steps.push(Step::Result {
                        call_id,
                        ok: self.below(2) == 0,
                        content: self.text(longest),
                        outside: false,
                        private: false,
                    });
                }
            }
        }
        steps
    }
}

#[test]
fn whatever_the_history_nothing_is_orphaned_and_the_room_is_kept() {
    let mut numbers = Numbers(11);
    for history in 0..400 {
        let longest = [20, 300, 3_000][numbers.below(3)];
        let turns: Vec<PastTurn> = (0..numbers.below(30))
            .map(|number| {
                let steps = match numbers.below(3) {
                    0 => numbers.steps(3, longest),
                    _ => Vec::new(),
                };
                PastTurn {
                    message: asked(&format!("q{number} {}", numbers.text(longest))),
                    reply: (numbers.below(6) > 0)
                        .then(|| said(Role::Assistant, None, &numbers.text(longest))),
                    ..turn(number as i64, 0, steps)
                }
            })
            .collect();
        let now = asked(&format!("now {}", numbers.text(200)));
        let steps = numbers.steps(5, longest);
        let input = input(&turns, &now, &steps);
        let tools = numbers.below(200);
        let budget = budget(300 + numbers.below(4_000));
        for use_all in [false, true] {
            let fitted = fit(&input, tools, budget, use_all);
            let messages = &fitted.context.messages;
            assert_paired(messages);
            assert_eq!(
                fitted.tokens,
                text_tokens(&fitted.context.system) + tools + message_tokens(messages)
            );
            // The shown turns are the newest, without a gap.
            let shown: Vec<&str> = messages
                .iter()
                .filter_map(|message| match message {
                    ChatMessage::User { text } => text.split(' ').next(),
                    _ => None,
                })
                .collect();
            let mut expected: Vec<String> = (fitted.left_out..turns.len())
                .map(|number| format!("q{number}"))
                .collect();
            expected.push("now".to_owned());
            assert_eq!(shown, expected, "{history}");
            // The newest turn is whole: its words, its replies and calls.
            let begin = messages
                .iter()
                .rposition(|message| matches!(message, ChatMessage::User { .. }))
                .unwrap();
            assert_eq!(
                messages[begin],
                ChatMessage::User {
                    text: now.content.clone()
                }
            );
            let replies = |step: &&Step| matches!(step, Step::Reply { .. });
            let answers = |message: &&ChatMessage| matches!(message, ChatMessage::Assistant { .. });
            assert_eq!(
                messages[begin..].iter().filter(answers).count(),
                steps.iter().filter(replies).count()
            );
            // Only a present turn of irreducible length may take more.
            let least = input.present_shortened(LEAST_RESULT);
            let irreducible = text_tokens(&fitted.context.system) + tools + message_tokens(&least);
            assert!(
                fitted.tokens <= budget.tokens.max(irreducible),
                "{history}: {} of {}",
                fitted.tokens,
                budget.tokens
            );
        }
    }
}
