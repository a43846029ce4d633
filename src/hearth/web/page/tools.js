// The tools, their sources and permissions, and the skills.

import { h, ask, iconButton, options, complain, rowList, toast } from "./dom.js";

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
  await draw();
  offer();
  const changed = () => draw().catch(complain);
  const events = ["config", "skill"];
  events.forEach((name) => household.addEventListener(name, changed));
  return { element: page, close: () => events.forEach((name) => household.removeEventListener(name, changed)) };

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

  /** Removes a tool, or the MCP server that it is of. */
  async function drop(name) {
    const sure = await ask({ title: "Remove this tool?", text: name, action: "Remove", danger: true });
    if (!sure) return;
    try {
      await household.request("remove_tool", { name });
      await draw();
    } catch (error) {
      complain(error);
    }
  }

  function skill(one) {
    return h("li",
      h("div.grow", h("strong", one.name), h("p.small", one.description),
        one.files.length ? h("p.quiet.small", "Files: ", one.files.join(", ")) : null),
      household.isAdmin && iconButton("trash", `Remove: ${one.name}`, "Remove", () => remove(one)));
  }

  async function remove({ name }) {
    const sure = await ask({ title: "Remove this skill?", text: name, action: "Remove", danger: true });
    if (!sure) return;
    try {
      await household.request("remove_skill", { name });
      await draw();
    } catch (error) {
      complain(error);
    }
  }

  function row(tool, overrides) {
    const parameters = Object.entries(tool.parameters);
    const select = h("select", { "aria-label": `Permission for ${tool.name}` },
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
      h("div.grow", h("strong", tool.name), " ", h("span.badge", origin(tool.source)),
        h("p.small", tool.description),
        parameters.length ? h("p.quiet.small", "Parameters: ", parameters.map(([name, type]) => `${name} (${type})`).join(", ")) : null),
      household.isAdmin ? select : h("span.quiet", tool.permission),
      household.isAdmin && tool.source !== "builtin" && iconButton("trash", `Remove: ${tool.name}`, "Remove", () => drop(tool.source.startsWith("mcp:") ? tool.source.slice(4) : tool.name)));
  }
}
