// The tools, their sources and permissions, and the skills.

import { offerTelling } from "./approvals.js";
import { h, options, complain, rowList, toast } from "./dom.js";
import { ownerLines } from "./forms.js";
import { changes } from "./list.js";
import { pieces, say } from "./more.js";
import { serversCard } from "./status.js";

const CHOICES = [["", say("common.default")], ...["ask", "allow", "deny"].map((mode) => [mode, say(`settings.mode.${mode}`)])];

function origin(source) {
  if (source === "builtin") return say("tools.built_in");
  if (source === "custom") return say("tools.custom");
  return source.startsWith("mcp:") ? say("tools.mcp", { name: source.slice(4) }) : source;
}

/** The page. */
export async function show(household) {
  const rows = rowList();
  const page = h("div.page");
  const adding = h("div");
  const { remover, watch } = changes(household, draw);
  await draw();
  offer();
  return { element: page, close: watch("config", "skill") };

  async function draw() {
    const [{ tools }, config, { skills }, { mcp_servers: servers = [] }] = await Promise.all([
      household.request("list_tools"), household.request("get_config"),
      household.isGuest ? { skills: [] } : household.request("list_skills"),
      household.isAdmin ? household.request("server_info") : {},
    ]);
    const failing = servers.filter((one) => one.problem);
    const overrides = config.tool_permissions;
    rows.replaceChildren(...tools.map((tool) => row(tool, overrides)));
    page.replaceChildren(
      h("p.quiet", pieces("tools.help", { mode: h("strong", say(`common.mode.${config.permission_mode}`)) }),
        household.isAdmin && [" ", h("a", { href: "#/settings" }, say("tools.change_mode"))]),
      offerTelling(household, config) ?? "",
      ...(tools.some((tool) => tool.is_left_out)
        ? [h("p.quiet", say("tools.left_out"))] : []),
      ...(failing.length ? [serversCard(failing)] : []),
      tools.length ? rows : h("p", say("tools.none")),
      adding,
      ...(skills.length || household.isAdmin ? [h("h2", say("tools.skills")), h("p.quiet", say("tools.skills_help")), rowList(skills.map(skill)), ...(household.isAdmin ? ownerLines(say("tools.skills_owner"), "hearth skill add ./skill") : [])] : []));
  }

  /** Offers the catalogue, which is loaded when somebody wants it. */
  async function offer() {
    if (!household.isAdmin) return;
    const open = h("button", { onclick: () => show().catch(complain) }, say("catalogue.add_tool"));
    adding.replaceChildren(open);
    const show = async () => {
      const { form } = await import("./catalogue.js");
      adding.replaceChildren(await form(household, async (said) => {
        toast(said);
        await offer();
        await draw();
      }));
      adding.querySelector("select").focus();
    };
  }

  function skill(one) {
    return h("li",
      h("div.grow", h("strong", one.name), h("p.small", one.description),
        one.files.length ? h("p.quiet.small", say("tools.files", { files: one.files.join(", ") })) : null),
      household.isAdmin && remover(say("common.remove"), { what: one.name, title: say("tools.remove_skill") }, "remove_skill", { name: one.name }));
  }

  function row(tool, overrides) {
    // A tool of an MCP server goes with its server.
    const removed = tool.source.startsWith("mcp:") ? tool.source.slice(4) : tool.name;
    const select = h("select", { "aria-label": say("tools.permission_for", { tool: tool.label }) },
      options(tool.name === "schedule" ? [...CHOICES, ["allow_own", say("common.mode.allow_own")]] : CHOICES, overrides[tool.name] ?? ""));
    select.addEventListener("change", async () => {
      const config = await household.request("get_config");
      const next = { ...config.tool_permissions };
      if (select.value) next[tool.name] = select.value;
      else delete next[tool.name];
      try {
        await household.request("update_config", { config: { tool_permissions: next } });
      } catch (error) {
        complain(error);
        await draw();
      }
    });
    return h("li",
      h("div.grow", h("strong", { title: tool.name }, tool.label), " ", h("span.badge", origin(tool.source)), tool.is_left_out ? [" ", h("span.badge", say("tools.on_demand"))] : null,
        h("p.small", tool.about), tool.effect ? h("p.quiet.small", tool.effect) : null),
      household.isAdmin ? select : h("span.quiet", say(`common.mode.${tool.permission}`)),
      household.isAdmin && tool.source !== "builtin" && remover(say("common.remove"), { what: tool.label, title: say("tools.remove_tool"), text: removed }, "remove_tool", { name: removed }));
  }
}
