use std::collections::VecDeque;

use super::*;
use crate::model::Takes;
use crate::model::estimate::text_tokens;
use crate::prompt::testing::*;
use base::ids::{AttachmentId, TurnId};
use store::{Attachment, PastTurn, Role, Step, ToolCall, TurnState};

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

fn budget(tokens: usize) -> TokenBudget {
    TokenBudget {
        tokens,
        result_chars: tokens.min(16_000),
        turns: 100,
        past: usize::MAX,
    }
}

/// Fails unless every call has exactly one result, in order, before anything
/// else is said.
fn assert_paired(messages: &[ChatMessage<'_>]) {
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

fn results(messages: &[ChatMessage<'_>]) -> Vec<usize> {
    let sizes = messages.iter().filter_map(|message| match message {
        ChatMessage::ToolResult { .. } => Some(message.text().len()),
        _ => None,
    });
    sizes.collect()
}

/// How many turns are left out, and how many results are shown in short.
fn left_out_and_short(fitted: &Context<'_>) -> (usize, usize) {
    assert_paired(&fitted.messages);
    let sizes = results(&fitted.messages);
    let short = sizes.iter().filter(|size| **size < 200).count();
    (fitted.left_out, short)
}

/// A past of six turns, each of about 373 tokens, and 163 with its result in a line. The
/// rest of a request takes about 150.
fn six_turns() -> Vec<PastTurn> {
    (0..6)
        .map(|number| turn(number, 100, round("1", &"r ".repeat(500))))
        .collect()
}

#[test]
fn what_does_not_fit_is_shortened_and_then_left_out() {
    let (turns, now, utc) = (six_turns(), asked("now"), utc());
    for (tokens, expected) in [
        (10_000, (0, 0)),
        (2_500, (0, 0)),
        (2_300, (0, 4)),
        (1_700, (0, 4)),
        (1_450, (1, 3)),
        (1_000, (4, 0)),
        (700, (5, 0)),
        (250, (6, 0)),
    ] {
        let fitted = fit(&input(&utc, &turns, &now), 0, budget(tokens));
        assert_eq!(
            left_out_and_short(&fitted),
            expected,
            "{tokens}: {}",
            fitted.tokens
        );
        assert!(fitted.tokens <= tokens, "{tokens}: {}", fitted.tokens);
        let is_told = format!("{:?}", fitted).contains("not shown here");
        assert_eq!(is_told, expected.0 > 0);
    }
    // What was folded before stays so, however much room there is.
    let mut folded = turns;
    folded[0].is_shortened = true;
    let with_gap = PromptInput {
        has_gap: true,
        ..input(&utc, &folded, &now)
    };
    let fitted = fit(&with_gap, 0, budget(10_000));
    assert_eq!(left_out_and_short(&fitted), (0, 1));
    assert!(format!("{:?}", fitted).contains("not shown here"));
}

#[test]
fn a_fold_leaves_room_for_many_turns() {
    let (turns, utc) = (six_turns(), utc());
    let of = |hidden, shortened| Some(Fold { hidden, shortened });
    for (tokens, fixed, expected) in [
        (10_000, 0, None),
        (3_100, 0, None),
        (2_800, 0, of(0, 4)),
        (2_500, 0, of(0, 4)),
        (2_200, 0, of(3, 4)),
        (1_000, 0, of(4, 4)),
        (200, 0, of(6, 6)),
        (3_200, 0, None),
        (3_200, 400, of(0, 4)),
    ] {
        let found = fold(&turns, fixed, budget(tokens), form(&utc));
        assert_eq!(found, expected, "{tokens} {fixed}");
    }
    // Once folded, there is nothing more to do.
    let mut folded = six_turns();
    for turn in &mut folded[..4] {
        turn.is_shortened = true;
    }
    assert_eq!(fold(&folded, 0, budget(2_500), form(&utc)), None);
}

#[test]
fn of_too_many_turns_half_go() {
    let turns: Vec<PastTurn> = (0..100).map(|number| turn(number, 1, vec![])).collect();
    let fold = |turns| fold(turns, 0, budget(100_000), form(&utc()));
    assert_eq!(fold(&turns[1..]), None);
    assert_eq!(fold(&turns).map(|fold| fold.hidden), Some(50));
}

#[test]
fn the_tools_and_what_is_added_take_their_room() {
    let turns: Vec<PastTurn> = (0..4).map(|number| turn(number, 100, vec![])).collect();
    let (now, utc) = (asked("now"), utc());
    let plain = input(&utc, &turns, &now);
    let left_out = |input: &PromptInput<'_>, tools| fit(input, tools, budget(800)).left_out;
    assert_eq!(left_out(&plain, 0), 0);
    assert!(left_out(&plain, 400) > 0);
    let text = "abc ".repeat(400);
    let summary = PromptInput {
        summary: Some(&text),
        ..plain
    };
    let known = vec![memory(&"abc ".repeat(100)); 5];
    let memories = PromptInput {
        memories: &known,
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
    let utc = utc();
    let with = |steps| PromptInput {
        steps,
        ..input(&utc, &[], &now)
    };
    for (tokens, expected) in [
        (20_000, vec![4_200; 5]),
        (4_000, vec![150, 150, 150, 150, 4_200]),
    ] {
        let fitted = fit(&with(&steps), 0, budget(tokens));
        let messages = &fitted.messages;
        assert_paired(messages);
        let sizes = results(messages);
        assert_eq!(sizes.len(), 5);
        assert!(fitted.tokens <= tokens, "{tokens}: {}", fitted.tokens);
        for (size, expected) in sizes.iter().zip(&expected) {
            assert!(size.abs_diff(*expected) < 50, "{tokens}: {sizes:?}");
        }
        assert_eq!(unstamped(&messages[0].text()), now.content);
    }
    let tight = fit(&with(&steps), 0, budget(600));
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
                result_chars: None,
            });
            // Some results are missing, as after a crash.
            for call_id in ids {
                let id = call_id.clone();
                steps.push(Step::Started { call_id: id });
                if self.below(8) > 0 {
                    steps.push(Step::Result {
                        call_id,
                        ok: self.below(2) == 0,
                        content: self.text(longest),
                        outside: false,
                        private: false,
                        memories: Vec::new(),
                        files: Vec::new(),
                        page: None,
                    });
                }
            }
        }
        steps
    }
}

#[test]
fn whatever_the_history_nothing_is_orphaned_and_the_room_is_kept() {
    let (mut numbers, utc) = (Numbers(11), utc());
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
        let input = PromptInput {
            steps: &steps,
            ..input(&utc, &turns, &now)
        };
        let tools = numbers.below(200);
        let budget = budget(300 + numbers.below(4_000));
        let fitted = fit(&input, tools, budget);
        let messages = &fitted.messages;
        assert_paired(messages);
        let exact = text_tokens(&fitted.system) + tools + message_tokens(messages);
        assert!(
            fitted.tokens.abs_diff(exact) <= 3,
            "{} {exact}",
            fitted.tokens
        );
        // The shown turns are the newest, without a gap.
        let shown: Vec<&str> = messages
            .iter()
            .filter_map(|message| match message {
                ChatMessage::User { content, .. } => Some(&*content.text),
                _ => None,
            })
            .map(|text| text.split(' ').next().unwrap())
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
        assert!(messages[begin].text().ends_with(&*now.content));
        let replies = |step: &&Step| match step {
            Step::Reply { text, calls, .. } => !calls.is_empty() || !text.trim().is_empty(),
            _ => false,
        };
        let answers = |message: &&ChatMessage| matches!(message, ChatMessage::Assistant { .. });
        assert_eq!(
            messages[begin..].iter().filter(answers).count(),
            steps.iter().filter(replies).count()
        );
        // Only a present turn of irreducible length may take more.
        let least = input.present_shortened(LEAST_RESULT);
        let irreducible = text_tokens(&fitted.system) + tools + message_tokens(&least) + 80;
        assert!(
            fitted.tokens <= budget.tokens.max(irreducible),
            "{history}: {} of {}",
            fitted.tokens,
            budget.tokens
        );
    }
}

fn with_file(mut turn: PastTurn) -> PastTurn {
    turn.message.attachments = vec![attachment("a.png", "image/png", 1)];
    turn
}

fn attachment(name: &str, media_type: &str, bytes: u64) -> Attachment {
    Attachment {
        attachment_id: AttachmentId::from(1),
        name: name.to_owned(),
        media_type: media_type.to_owned(),
        bytes,
    }
}

/// Which of the files are only named.
fn folded(messages: &[ChatMessage<'_>]) -> Vec<bool> {
    let files = messages.iter().filter_map(|message| match message {
        ChatMessage::User { files, .. } => Some(files),
        _ => None,
    });
    files.flatten().map(|file| file.is_folded).collect()
}

#[test]
fn files_of_older_turns_are_only_named_where_there_is_no_room() {
    let utc = utc();
    let takes = Takes {
        images: true,
        documents: false,
    };
    let past: Vec<PastTurn> = (0..5)
        .map(|number| with_file(turn(number, 1, vec![])))
        .collect();
    let present = asked("and now?");
    for (tokens, expected) in [
        (10_000, [false, false, false, false, false]),
        (4_000, [true, true, true, false, false]),
    ] {
        let input = PromptInput {
            form: MessageForm {
                takes,
                ..form(&utc)
            },
            ..input(&utc, &past, &present)
        };
        let fitted = fit(&input, 0, budget(tokens));
        assert_eq!(folded(&fitted.messages), expected);
        assert!(fitted.tokens <= tokens, "{}", fitted.tokens);
    }
}

#[test]
fn texts_of_the_present_message_share_what_there_is() {
    let utc = utc();
    let mut present = asked("compare them");
    present.attachments = vec![attachment("a.csv", "text/plain", 50_000); 4];
    let past = [turn(1, 1, vec![])];
    let fitted = fit(&input(&utc, &past, &present), 0, budget(2_000));
    let Some(ChatMessage::User { files, .. }) = fitted.messages.last() else {
        panic!("{:?}", fitted.messages);
    };
    for file in files {
        assert!((300..2_000).contains(&file.most_chars), "{file:?}");
    }
    assert!(fitted.tokens <= 2_000, "{}", fitted.tokens);
}

/// Whatever the model's window is by then.
#[test]
fn results_and_questions_stay_as_they_were_sent() {
    let (utc, now) = (utc(), asked("now"));
    let shown = |turn: &PastTurn, tokens: usize| {
        let past = std::slice::from_ref(turn);
        owned(fit(&input(&utc, past, &now), 0, budget(tokens))).messages
    };
    let long = "word ".repeat(1_000);
    let with = |most| {
        let mut steps = vec![calls("", &[("1", "look")]), result("1", true, &long)];
        if let Step::Reply { result_chars, .. } = &mut steps[0] {
            *result_chars = most;
        }
        past("one", steps, Some("done"))
    };
    let length = |turn: &PastTurn, tokens: usize| {
        let result = shown(turn, tokens)
            .into_iter()
            .find_map(|message| match message {
                ChatMessage::ToolResult { .. } => Some(message.text().len()),
                _ => None,
            });
        result.unwrap()
    };
    assert_eq!(
        [length(&with(None), 3_000), length(&with(None), 16_000)],
        [5_000; 2]
    );
    let cut = [
        length(&with(Some(300)), 3_000),
        length(&with(Some(300)), 16_000),
    ];
    assert!(cut[0] == cut[1] && cut[0] < 500, "{cut:?}");

    let failed = PastTurn {
        state: TurnState::Failed,
        error: Some("the key has expired".to_owned()),
        ..past(&"clause ".repeat(5_000), vec![], None)
    };
    assert!(shown(&failed, 30_000)[0].text().len() > 35_000);
}
