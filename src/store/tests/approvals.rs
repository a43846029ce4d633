//! Approvals.

use std::time::Duration;

use crate::testing::*;
use base::error::Code;

fn suspended(store: &Store, tools: &[&str]) -> (Turn, Vec<Approval>) {
    let new = NewTurn {
        channel: "webhook:ci".to_owned(),
        account: Some("ci".to_owned()),
        ..message(Target::New, "do it")
    };
    let turn = store.begin_turn(new).unwrap().turn().clone();
    let step = Step::Started {
        call_id: "1".to_owned(),
    };
    let questions = tools.iter().map(|tool| question(tool)).collect();
    let expires_at = turn.created_at.plus(Duration::from_secs(60));
    let approvals = store
        .suspend_turn(turn.id, vec![step], turn.audience_id, questions, expires_at)
        .unwrap();
    (turn, approvals.into_inner())
}

#[test]
fn a_turn_goes_on_after_the_last_decision() {
    let store = TestStore::new();
    let (turn, approvals) = suspended(&store, &["write", "run"]);
    assert_eq!(
        store.seen(&all()).turn(turn.id).unwrap().state,
        TurnState::WaitingApproval
    );
    assert_eq!(
        store.seen(&Viewer::server()).steps(turn.id).unwrap().len(),
        1
    );
    assert_eq!(store.seen(&all()).waiting_approvals().unwrap().len(), 2);

    let first = store
        .decide(approvals[1].id, decision(Verdict::ApprovedConversation))
        .unwrap();
    assert!(!first.resumes);
    let again = store
        .decide(approvals[1].id, decision(Verdict::Denied))
        .unwrap_err();
    assert_eq!(again.code(), Code::InvalidRequest);
    let last = store
        .decide(approvals[0].id, decision(Verdict::Denied))
        .unwrap();
    assert!(last.resumes);
    assert_eq!(
        store.seen(&all()).turn(turn.id).unwrap().state,
        TurnState::Queued
    );

    let stored = store.seen(&Viewer::server()).approvals_of(turn.id).unwrap();
    let decisions: Vec<_> = stored.into_iter().map(|a| a.decision.unwrap()).collect();
    assert_eq!(
        decisions,
        [
            decision(Verdict::Denied),
            decision(Verdict::ApprovedConversation)
        ]
    );
    for (tool, allowed) in [("run", true), ("write", false)] {
        for (account, is_asker) in [(Some("ci"), true), (Some("shop"), false), (None, false)] {
            let granted =
                store
                    .seen(&Viewer::server())
                    .is_granted(turn.conversation_id, tool, None, account);
            assert_eq!(granted.unwrap(), allowed && is_asker, "{tool} {account:?}");
        }
    }
}

#[test]
fn what_nobody_answers_expires() {
    let store = TestStore::new();
    let (turn, approvals) = suspended(&store, &["write"]);
    let expires_at = approvals[0].expires_at;
    let before = expires_at.minus(Duration::from_millis(1));
    assert_eq!(store.expired_approvals(before).unwrap().uncommitted(), []);
    assert_eq!(
        store.expired_approvals(expires_at).unwrap().uncommitted(),
        [approvals[0].id]
    );
    let decided = store
        .decide(approvals[0].id, decision(Verdict::Expired))
        .unwrap();
    assert!(decided.resumes);
    assert_eq!(
        store.expired_approvals(expires_at).unwrap().uncommitted(),
        []
    );
    assert_eq!(
        store.seen(&all()).turn(turn.id).unwrap().state,
        TurnState::Queued
    );
}

#[test]
fn the_questions_of_an_ended_turn_are_closed() {
    let store = TestStore::new();
    let (turn, approvals) = suspended(&store, &["write"]);
    end(
        &store,
        &turn,
        TurnEnd::Cancelled {
            said: String::new(),
        },
    );
    assert!(store.seen(&all()).waiting_approvals().unwrap().is_empty());
    let late = store.decide(approvals[0].id, decision(Verdict::ApprovedOnce));
    assert_eq!(late.unwrap_err().code(), Code::InvalidRequest);
    let unknown = store.decide(base::ids::ApprovalId::from(3), decision(Verdict::Denied));
    assert_eq!(unknown.unwrap_err().code(), Code::NotFound);
}

#[test]
fn a_turn_cannot_wait_for_nothing() {
    let store = TestStore::new();
    let turn = begin(&store, Target::New, "do it");
    let error = store
        .suspend_turn(turn.id, vec![], turn.audience_id, vec![], turn.created_at)
        .unwrap_err();
    assert_eq!(error.code(), Code::InvalidRequest);
    assert_eq!(
        store.seen(&all()).turn(turn.id).unwrap().state,
        TurnState::Queued
    );
}
