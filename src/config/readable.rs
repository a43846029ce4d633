//! What `get_config` shows: every current setting, and no secret.

use serde_json::{Map, Value};

use super::channels::Channel;
use super::config::{Config, PROVIDER_TEMPERATURE};
use super::mcp_servers::{McpServer, McpWay};
use super::providers::ModelChoice;
use super::webhook_accounts::WebhookAccount;
use base::people::folded;
use base::role::UserRole;
use base::url::{host_only, masked};
use serde_json::json;

impl Config {
    /// The readable fields, in order: the contract's three first.
    pub(super) fn readable(&self) -> Map<String, Value> {
        let custom: Vec<&str> = self
            .tools
            .custom
            .iter()
            .map(|tool| tool.name.as_str())
            .collect();
        let channels: Vec<Value> = self.channels.iter().map(channel).collect();
        let mcp_servers: Map<String, Value> = self
            .mcp_servers
            .iter()
            .map(|server| (server.name.clone(), mcp_server(server)))
            .collect();
        let fallback: Vec<Value> = self.fallback.iter().map(model_choice).collect();
        let fields = json!({
            "provider": self.provider,
            "model": self.model,
            "temperature": self.temperature.unwrap_or(PROVIDER_TEMPERATURE),
            "api_key_set": self.api_key.is_some(),
            "models": self.models,
            "titles": self.titles,
            "base_url": self.base_url.as_deref().map(masked),
            "assistant": self.assistant,
            "system_prompt": self.system_prompt,
            "max_tokens": self.max_tokens,
            "context_tokens": self.context_tokens,
            "reasoning_effort": self.reasoning_effort,
            "keep_alive_minutes": self.keep_alive_minutes,
            "fallback": fallback,
            "memory": self.memory,
            "budget": { "monthly_tokens": self.budget.monthly_tokens },
            "permission_mode": self.permission_mode,
            "tool_permissions": self.tool_permissions,
            "people": self.people,
            "notifications": self.notifications,
            "privacy": self.privacy,
            "time_zone": self.time_zone,
            "workers": self.workers,
            "log_level": self.log_level,
            "session_days": self.session_days,
            "limits": self.limits,
            "backup": self.backup,
            "retention": self.retention,
            "channels": channels,
            "tls": self.tls,
            "tools": {
                "custom": custom,
                "web_fetch": self.tools.web_fetch,
                "files": self.tools.files,
                "run_command": self.tools.run_command,
            },
            "mcp_servers": mcp_servers,
            "relay": {
                "enabled": self.relay.enabled,
                "auth_token_set": self.relay.auth_token.is_some(),
            },
            "voice": self.voice,
            "openai_api": self.openai_api,
            "mcp_api": self.mcp_api,
            "metrics": {
                "enabled": self.metrics.enabled,
                "token_set": self.metrics.token.is_some(),
            },
            "allowed_origins": self.allowed_origins,
            "allowed_hosts": self.allowed_hosts,
            "trusted_proxies": self.trusted_proxies,
        });
        match fields {
            Value::Object(fields) => fields,
            _ => Map::new(),
        }
    }
}

impl Config {
    /// The readable fields as the user of this name and role may see them.
    pub(super) fn readable_by(&self, name: &str, role: UserRole) -> Map<String, Value> {
        let mut fields = self.readable();
        if role < UserRole::Admin
            && let Some(Value::Object(people)) = fields.get_mut("people")
        {
            let own = folded(name);
            people.retain(|name, _| folded(name) == own);
        }
        if role < UserRole::User
            && let Some(Value::Array(channels)) = fields.get_mut("channels")
        {
            channels.retain(|channel| channel["type"] != "webhook");
        }
        fields
    }
}

fn channel(channel: &Channel) -> Value {
    match channel {
        Channel::Tcp(tcp) => json!({
            "name": tcp.name,
            "type": channel.kind(),
            "port": tcp.port,
            "bind": tcp.bind,
            "allow_from": tcp.allow_from,
        }),
        Channel::Relay(relay) => json!({
            "name": relay.name,
            "type": channel.kind(),
            "url": masked(&relay.url),
            "auth_token_set": relay.auth_token.is_some(),
            "encryption": relay.encryption,
        }),
        Channel::Webhook(webhook) => {
            let accounts: Map<String, Value> = webhook
                .accounts
                .iter()
                .map(|account| (account.name.clone(), webhook_account(account)))
                .collect();
            json!({
                "name": channel.name(),
                "type": channel.kind(),
                "port": webhook.port,
                "accounts": accounts,
            })
        }
    }
}

fn webhook_account(account: &WebhookAccount) -> Value {
    json!({
        "incoming_path": account.incoming_path,
        "outgoing_url": host_only(&account.outgoing_url),
        "secret_set": account.secret.is_some(),
        "model": account.model,
        "permission_mode": account.permission_mode,
        "tools": account.tools,
        "tool_permissions": account.tool_permissions,
        "audience": account.audience,
        "trusted": account.trusted,
    })
}

fn model_choice(choice: &ModelChoice) -> Value {
    json!({
        "provider": choice.provider,
        "model": choice.model,
        "api_key_set": choice.api_key.is_some(),
        "base_url": choice.base_url.as_deref().map(masked),
        "context_tokens": choice.context_tokens,
    })
}

fn mcp_server(server: &McpServer) -> Value {
    let (key, place) = match &server.way {
        McpWay::Stdio { command, .. } => ("command", command.clone()),
        McpWay::Http { url, .. } => ("url", host_only(url)),
    };
    json!({
        key: place,
        "disabled": server.disabled,
        "timeout_seconds": server.timeout_seconds,
        "trusted": server.trusted,
    })
}
