//! `hearth user invite`, `reset`, `invitations` and `revoke`: links by which a person
//! chooses a password. They work on the database directly.

use super::{find, finish_removals, narrow_child, role};
use crate::cli::arguments::Arguments;
use crate::cli::context::{CliContext, CliError, CliResult};
use crate::cli::data_directory::DataDirectory;
use crate::cli::running_server::RunningServer;
use crate::cli::serve::reachable;
use crate::cli::table::{self, ListView};
use crate::qr;
use crate::service::invitations::new_link;
use crate::service::people::check_user_name;
use crate::service::views;
use base::clock::Clock;
use base::secret::Secret;
use serde_json::json;
use store::{Invitation, NewInvitation, UserRole};

/// Who made a link that was made here.
const BY: &str = "the command line";

/// `hearth user invite NAME`
pub fn invite(arguments: &Arguments, context: &mut CliContext) -> CliResult {
    let name = arguments.required(0);
    check_user_name(name)?;
    let role = role(arguments)?.unwrap_or(UserRole::User);
    let directory = DataDirectory::of(arguments, context)?;
    let (link, stored) = link(arguments, &directory)?;
    let store = directory.open_store()?;
    finish_removals(&directory, &store)?;
    if arguments.has("child") {
        narrow_child(&directory, &store, name)?;
    }
    let made = store.invite(name, role, stored)?;
    store.close();
    show(&made, &link, arguments, context)
}

/// `hearth user reset NAME`
pub fn reset(arguments: &Arguments, context: &mut CliContext) -> CliResult {
    let directory = DataDirectory::of(arguments, context)?;
    let (link, stored) = link(arguments, &directory)?;
    let store = directory.open_store()?;
    let user = find(&store, arguments.required(0))?;
    let made = store.add_invitation(user.id, stored)?;
    store.close();
    show(&made, &link, arguments, context)
}

/// `hearth user invitations`
pub fn list(arguments: &Arguments, context: &mut CliContext) -> CliResult {
    let store = DataDirectory::of(arguments, context)?.open_store()?;
    let invitations = store.invitations()?;
    store.close();
    let list = ListView {
        columns: &["name", "role", "for", "made by", "works until"],
        row: &|one: &Invitation| {
            vec![
                one.name.clone(),
                one.role.as_str().to_owned(),
                purpose(one).to_owned(),
                one.created_by.clone(),
                table::time(one.expires_at),
            ]
        },
        json: &|invitation| json!(views::invitation(invitation)),
        empty: "No link is open; make one with `hearth user invite NAME`.",
    };
    list.print(&invitations, arguments, context)
}

/// `hearth user revoke NAME`
pub fn revoke(arguments: &Arguments, context: &mut CliContext) -> CliResult {
    let directory = DataDirectory::of(arguments, context)?;
    let store = directory.open_store()?;
    let user = find(&store, arguments.required(0))?;
    let is_revoked = store.revoke_invitation(user.id)?;
    if user.is_invited() {
        store.remove_user(user.id)?;
        finish_removals(&directory, &store)?;
    }
    store.close();
    match (user.is_invited(), is_revoked) {
        (true, _) => context.note(format_args!("Revoked the invitation of {}.", user.name)),
        (false, true) => context.note(format_args!(
            "Revoked the link for a new password of {}.",
            user.name
        )),
        (false, false) => Err(CliError::failed(format!(
            "there is no link for {}; `hearth user invitations` shows all",
            user.name
        ))),
    }
}

fn purpose(invitation: &Invitation) -> &'static str {
    match invitation.is_reset {
        true => "a new password",
        false => "the first sign-in",
    }
}

/// A link to the page of the server that runs, or to `--url`.
fn link(
    arguments: &Arguments,
    directory: &DataDirectory,
) -> Result<(Secret, NewInvitation), CliError> {
    let url = match arguments.text("url")? {
        Some(url) => url.to_owned(),
        None => RunningServer::find(directory)
            .and_then(|server| {
                let address = reachable(*server.addresses.first()?);
                Some(format!("{}://{address}/", server.scheme()))
            })
            .ok_or_else(|| {
                CliError::failed(
                    "the server does not run, so the address of its page is not known: start it, \
                     or give the address with --url",
                )
            })?,
    };
    Ok(new_link(&url, BY, Clock::system().now())?)
}

fn show(
    made: &Invitation,
    link: &Secret,
    arguments: &Arguments,
    context: &mut CliContext,
) -> CliResult {
    if arguments.has("json") {
        let mut shown = views::invitation(made);
        shown.link = Some(link.expose().to_owned());
        return table::print_json(context, &json!(shown));
    }
    writeln!(context.output, "{}", link.expose())?;
    if arguments.has("qr") || context.output_is_terminal {
        write!(context.output, "\n{}\n", qr::code(link.expose())?)?;
    }
    context.note(format_args!(
        "With this link {} chooses {} and is signed in. It works once, until {}. Whoever has it \
         can use it: hand it to {} alone.",
        made.name,
        match made.is_reset {
            true => "a new password",
            false => "a password",
        },
        table::time(made.expires_at),
        made.name,
    ))
}
