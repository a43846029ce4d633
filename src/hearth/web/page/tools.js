// The tools, their sources and permissions, and the skills.

import { h, options, complain, rowList, toast } from "./dom.js";
import { changes } from "./list.js";

const CHOICES = [["", "Default"], ["ask", "Ask"], ["allow", "Allow"], ["deny", "Deny"]];

function origin(source) {
  if (source === "builtin") return "built in";
  if (source === "custom") return "from the configuration";
  return source.startsWith("mcp:") ? `MCP server ${source.slice(4)}` : source;
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
    const [{ tools }, config, { skills }] = await Promise.all([
      household.request("list_tools"), household.request("get_config"),
      household.isGuest ? { skills: [] } : household.request("list_skills"),
    ]);
    const overrides = config.tool_permissions;
    rows.replaceChildren(...tools.map((tool) => row(tool, overrides)));
    page.replaceChildren(
      h("p.quiet", "Tools that the assistant can use. The permission mode is “", h("strong", config.permission_mode), "”",
        household.isAdmin ? [" (", h("a", { href: "#/settings" }, "change it"), ")"] : null, "; each tool can override it."),
      ...(tools.some((tool) => tool.is_left_out)
        ? [h("p.quiet", "All of them take too much of the model’s window. It is not shown those that are marked “found on demand”, and looks for them when it needs them.")] : []),
      tools.length ? rows : h("p", "There are no tools."),
      adding,
      ...(skills.length ? [h("h2", "Skills"), h("p.quiet", "Instructions that the assistant reads when it needs them. ", h("code", "hearth skill add DIR"), " installs one."), rowList(skills.map(skill))] : []));
  }

  /** Offers the catalogue, which is loaded when somebody wants it. */
  async function offer() {
    if (!household.isAdmin) return;
    const open = h("button", { onclick: () => show().catch(complain) }, "Add a tool");
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
        one.files.length ? h("p.quiet.small", "Files: ", one.files.join(", ")) : null),
      household.isAdmin && remover("Remove", { what: one.name, title: "Remove this skill?" }, "remove_skill", { name: one.name }));
  }

  function row(tool, overrides) {
    // A tool of an MCP server goes with its server.
    const removed = tool.source.startsWith("mcp:") ? tool.source.slice(4) : tool.name;
    const select = h("select", { "aria-label": `Permission for ${tool.label}` },
      options(CHOICES, overrides[tool.name] ?? ""));
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
      h("div.grow", h("strong", { title: tool.name }, tool.label), " ", h("span.badge", origin(tool.source)), tool.is_left_out ? [" ", h("span.badge", "found on demand")] : null,
        h("p.small", tool.about)),
      household.isAdmin ? select : h("span.quiet", tool.permission),
      household.isAdmin && tool.source !== "builtin" && remover("Remove", { label: `Remove: ${tool.label}`, title: "Remove this tool?", text: removed }, "remove_tool", { name: removed }));
  }
}
