//! Reminders and routines: prompts that run at a set time.

use serde_json::json;

use super::function::{FunctionTool, public};
use crate::model::fence::{is_of_sender, is_untrusted};
use crate::tools::definition::{Arguments, Change, Definition, ToolContext, required_text, text};
use base::calendar::Timing;
use base::ids::ScheduleId;
use store::{NewSchedule, SCHEDULE_CHANNEL, Schedule, Store, Viewer};

pub(super) fn schedule() -> FunctionTool {
    FunctionTool {
        definition: Definition::builtin(
            "schedule",
            "Reminders and routines: you get prompt then, your reply appears here. create: prompt \
             and at or cron. cancel: schedule_id from list.",
            json!({
                "action": {"type": "string", "enum": ["create", "list", "cancel"]},
                "prompt": {"type": "string"},
                "at": {
                    "type": "string",
                    "description": "Local: 2026-11-22T18:30, tomorrow 6pm, in 20 minutes, every other Friday",
                },
                "cron": {
                    "type": "string",
                    "description": "Or minute hour day month weekday",
                },
                "webhook": {"type": "string", "description": "Account that gets replies too"},
                "schedule_id": {"type": "string"},
            }),
            &["action"],
        )
        .for_readers(),
        intent,
        run,
    }
}

fn intent(arguments: &Arguments, _: &Store, _: &Viewer) -> Option<String> {
    let argument = |name| text(arguments, name);
    Some(match argument("action")? {
        "list" => "look at the schedules".to_owned(),
        "cancel" => format!("cancel the schedule {}", argument("schedule_id")?),
        _ => {
            let when = argument("at").or(argument("cron"))?;
            let prompt = argument("prompt")?;
            match argument("webhook") {
                Some(account) => format!(
                    "set a schedule ({when}) whose replies go to the webhook account {account}: \
                     {prompt}"
                ),
                None => format!("set a schedule ({when}): {prompt}"),
            }
        }
    })
}

fn run(arguments: &Arguments, context: &ToolContext<'_>) -> Result<String, String> {
    match text(arguments, "action") {
        Some("create") => create(arguments, context),
        Some("list") => list(context),
        Some("cancel") => cancel(arguments, context),
        _ => Err("the argument \"action\" must be create, list or cancel".to_owned()),
    }
}

/// What is set up in a turn of a webhook or a linked sender stays with that account: its
/// replies go there, under its permissions, and what a webhook says comes from outside.
fn create(arguments: &Arguments, context: &ToolContext<'_>) -> Result<String, String> {
    let prompt = required_text(arguments, "prompt")?;
    let named = text(arguments, "webhook");
    let account = match (context.account, named) {
        (Some(own), Some(other)) if own != other => {
            return Err(format!(
                "replies to here can go to the account {own:?} alone"
            ));
        }
        (own, named) => own.or(named),
    };
    if let Some(name) = named.filter(|name| context.account != Some(name)) {
        if context.is_narrowed {
            return Err(
                "this person's replies go to nobody else: leave out \"webhook\"".to_owned(),
            );
        }
        context.config.existing_account(name).map_err(public)?;
    }
    let zone = context.config.zone();
    let timing = Timing::new(
        text(arguments, "at"),
        text(arguments, "cron"),
        &zone,
        context.clock.now(),
    )
    .map_err(public)?;
    let channel = match is_untrusted(context.channel) || is_of_sender(context.channel) {
        true => context.channel,
        false => SCHEDULE_CHANNEL,
    };
    let schedule = context
        .store
        .add_schedule(
            &context.viewer,
            NewSchedule {
                is_outside: context.is_outside,
                prompt: prompt.to_owned(),
                owner: context.speaker.map(str::to_owned),
                owner_id: context.user_id,
                conversation_id: context.conversation_id,
                // Where there is none, whose is taken.
                audience: context.config.privacy.conversations.clone(),
                channel: channel.to_owned(),
                account: account.map(str::to_owned),
                timing,
            },
        )
        .map_err(public)?;
    context.changed(vec![Change::Schedule(
        schedule.id,
        schedule.readers.clone(),
    )]);
    let next = zone.spoken(schedule.timing.next_at, context.clock.now());
    Ok(match &schedule.timing.cron {
        Some(cron) => format!(
            "Set as {}; it comes on {next}, then by {cron}.",
            schedule.id
        ),
        None => format!("Set as {}; it comes on {next}.", schedule.id),
    })
}

fn list(context: &ToolContext<'_>) -> Result<String, String> {
    let mut listed = context
        .store
        .snapshot(&context.viewer)
        .and_then(|seen| seen.schedules())
        .map_err(public)?;
    listed.retain(|schedule| is_visible(schedule, context));
    let is_foreign = |schedule: &Schedule| schedule.is_outside || is_untrusted(&schedule.channel);
    if listed.is_empty() {
        return Ok("Nothing is scheduled.".to_owned());
    }
    context.shows_kept(listed.iter().any(is_foreign));
    let lines: Vec<String> = listed
        .iter()
        .map(|schedule| line(schedule, context))
        .collect();
    Ok(lines.join("\n"))
}

fn cancel(arguments: &Arguments, context: &ToolContext<'_>) -> Result<String, String> {
    let id: ScheduleId = required_text(arguments, "schedule_id")?
        .parse()
        .map_err(public)?;
    let schedule = context
        .store
        .snapshot(&context.viewer)
        .and_then(|seen| seen.schedule(id))
        .map_err(public)?;
    if !is_visible(&schedule, context) {
        return Err(format!("there is no schedule {id}"));
    }
    let readers = context
        .store
        .delete_schedule(&context.viewer, id)
        .map_err(public)?;
    context.changed(vec![Change::Schedule(id, readers)]);
    Ok(format!("Cancelled {id}."))
}

/// A webhook's callers see what was set up through it alone. The household sees all
/// that the readers of the conversation may see.
fn is_visible(schedule: &Schedule, context: &ToolContext<'_>) -> bool {
    !is_untrusted(context.channel) || schedule.channel == context.channel
}

fn line(schedule: &Schedule, context: &ToolContext<'_>) -> String {
    let next = context.config.zone().minute(schedule.timing.next_at);
    let cron = match &schedule.timing.cron {
        Some(cron) => format!(", cron {cron}"),
        None => String::new(),
    };
    let paused = if schedule.is_paused { ", paused" } else { "" };
    format!(
        "{} ({next}{cron}{paused}): {}",
        schedule.id, schedule.prompt
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tools::Origin;
    use crate::tools::testing::Household;
    use base::testing::rows;

    #[test]
    fn a_schedule_is_set_listed_and_cancelled() {
        let mut household = Household::new();
        household.conversation_id = household.say("hello");
        let run = |arguments| household.run("schedule", arguments);
        let nothing = run(json!({"action": "list"})).unwrap();
        assert_eq!(nothing, "Nothing is scheduled.");
        let set =
            run(json!({"action": "create", "prompt": "Water the plants", "cron": "0 8 * * *"}));
        let set = set.unwrap();
        let id = set
            .strip_prefix("Set as ")
            .unwrap()
            .split(';')
            .next()
            .unwrap();
        assert!(
            set.contains("day, ") && set.ends_with(", 08:00, then by 0 8 * * *."),
            "{set}"
        );
        let listed = run(json!({"action": "list"})).unwrap();
        assert!(listed.starts_with(&format!("{id} (2")), "{listed}");
        assert!(
            listed.ends_with(" 08:00, cron 0 8 * * *): Water the plants"),
            "{listed}"
        );
        let cancelled = run(json!({"action": "cancel", "schedule_id": id}));
        assert_eq!(cancelled.unwrap(), format!("Cancelled {id}."));
        let again = run(json!({"action": "cancel", "schedule_id": id}));
        assert!(again.unwrap_err().contains("there is no schedule"));
        run(json!({"action": "create", "prompt": "Bins", "at": "+20m"})).unwrap();
        let listed = run(json!({"action": "list"})).unwrap();
        assert!(
            listed.ends_with("): Bins") && !listed.contains("cron"),
            "{listed}"
        );
    }

    #[test]
    fn what_cannot_be_meant_is_explained() {
        let mut household = Household::new();
        household.conversation_id = household.say("hello");
        let table = r#"
            {"action": "wait"}                                           | create
            {"action": "create", "at": "+1m"}                            | "prompt" must not be empty
            {"action": "create", "prompt": "x"}                          | give either
            {"action": "create", "prompt": "x", "cron": "61 * * * *"}    | the minute of "cron"
            {"action": "create", "prompt": "x", "at": "2020-01-01T00:00"} | is in the past
            {"action": "create", "prompt": "x", "at": "+1m", "webhook": "ci"} | there is no webhook account "ci"
            {"action": "cancel", "schedule_id": "bins"}                  | there is no schedule
        "#;
        for [arguments, problem] in rows(table) {
            let arguments: serde_json::Value = arguments.parse().unwrap();
            let error = household.run("schedule", arguments).unwrap_err();
            assert!(error.contains(problem), "{error}");
        }
    }

    #[test]
    fn whoever_is_narrowed_gets_their_own_replies_alone() {
        let mut household = Household::new();
        household.is_narrowed = true;
        let mut create = json!({"action": "create", "prompt": "x", "at": "+20m"});
        household.run("schedule", create.clone()).unwrap();
        create["webhook"] = json!("ci");
        let refused = household.run("schedule", create.clone()).unwrap_err();
        assert!(refused.contains("go to nobody else"), "{refused}");
        // In a turn of that account they go there in any case.
        household.channel = "webhook:ci";
        household.run("schedule", create).unwrap();
    }

    #[test]
    fn what_a_webhook_sets_up_stays_with_its_account() {
        let mut household = Household::new();
        household.conversation_id = household.say("hello");
        let create = |prompt| json!({"action": "create", "prompt": prompt, "at": "+20m"});
        household
            .run("schedule", create("of the household"))
            .unwrap();
        household.channel = "webhook:ci";
        let mut elsewhere = create("x");
        elsewhere["webhook"] = json!("other");
        let refused = household.run("schedule", elsewhere).unwrap_err();
        assert!(refused.contains("the account \"ci\" alone"), "{refused}");
        household.run("schedule", create("of the account")).unwrap();
        let seen = household
            .run("schedule", json!({"action": "list"}))
            .unwrap();
        assert!(seen.ends_with("): of the account"), "{seen}");
        assert_eq!(seen.lines().count(), 1);
        household.channel = "websocket";
        let all = household
            .run("schedule", json!({"action": "list"}))
            .unwrap();
        assert_eq!(all.lines().count(), 2, "{all}");
        let foreign = all.lines().find(|line| line.contains("household")).unwrap();
        household.channel = "webhook:ci";
        let id = foreign.split(' ').next().unwrap();
        let cancel = json!({"action": "cancel", "schedule_id": id});
        assert!(household.run("schedule", cancel).is_err());
    }

    #[test]
    fn only_what_people_wrote_is_marked_as_theirs() {
        let household = Household::new();
        for (tool, arguments, origin) in [
            ("schedule", json!({"action": "list"}), Origin::Tool),
            (
                "schedule",
                json!({"action": "create", "prompt": "Bins"}),
                Origin::Tool,
            ),
            (
                "schedule",
                json!({"action": "create", "prompt": "Bins", "at": "soon"}),
                Origin::Tool,
            ),
            (
                "schedule",
                json!({"action": "create", "prompt": "Bins", "at": "+20m"}),
                Origin::Tool,
            ),
            ("schedule", json!({"action": "list"}), Origin::Trusted),
            (
                "schedule",
                json!({"action": "cancel", "schedule_id": "x"}),
                Origin::Tool,
            ),
            ("lists", json!({"action": "show"}), Origin::Tool),
            (
                "lists",
                json!({"action": "add", "list": "shop", "items": ["milk"]}),
                Origin::Trusted,
            ),
            (
                "lists",
                json!({"action": "add", "list": "shop"}),
                Origin::Tool,
            ),
            ("recall", json!({"query": "tea"}), Origin::Tool),
            (
                "search_conversations",
                json!({"query": "hello"}),
                Origin::Trusted,
            ),
        ] {
            let found = household.origin_of(tool, arguments.clone());
            assert_eq!(found, origin, "{tool} {arguments}");
        }
    }
}
