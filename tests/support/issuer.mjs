// An OpenID Connect issuer for tests: oidc-provider with a login form of its own, users that tests change, and answers
// that get lost. `issuer.py` runs it:
//
//   node issuer.mjs MODULES SETTINGS
//
// MODULES is the folder node_modules, SETTINGS a JSON file. Each line of the standard input is one command, and each
// line of the output its answer, both JSON. It ends with its input. What it has issued is kept in a file, so that a
// restart forgets nothing.
import { sign } from "node:crypto";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import https from "node:https";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

console.info = console.error; // the output is for answers
console.warn = console.error;

const [modules, file] = process.argv.slice(2);
const { Provider } = await import(pathToFileURL(`${modules}/oidc-provider/lib/index.js`).href);
const settings = JSON.parse(readFileSync(file, "utf8"));
const state = settings.state; // users, seconds, spoiled, faults: what commands change

// ------------------------------------------------------------------------------------------ what it has issued

const kept = existsSync(settings.store) ? JSON.parse(readFileSync(settings.store, "utf8")) : { entries: {}, asked: [] };
const keep = () => writeFileSync(settings.store, JSON.stringify(kept));

class Adapter {
  constructor(model) {
    this.model = model;
  }
  key(id) {
    return `${this.model}:${id}`;
  }
  async upsert(id, payload, expiresIn) {
    kept.entries[this.key(id)] = { payload, until: expiresIn === undefined ? null : Date.now() + expiresIn * 1000 };
    keep();
  }
  async find(id) {
    const entry = kept.entries[this.key(id)];
    return entry && (entry.until === null || entry.until > Date.now()) ? entry.payload : undefined;
  }
  async findByUid(uid) {
    return Object.entries(kept.entries).find(([key, { payload }]) => key.startsWith(`${this.model}:`) && payload.uid === uid)?.[1]
      .payload;
  }
  async findByUserCode() {
    return undefined;
  }
  async consume(id) {
    kept.entries[this.key(id)].payload.consumed = Math.floor(Date.now() / 1000);
    keep();
  }
  async destroy(id) {
    delete kept.entries[this.key(id)];
    keep();
  }
  async revokeByGrantId(grantId) {
    for (const [key, { payload }] of Object.entries(kept.entries))
      if (key.startsWith(`${this.model}:`) && payload.grantId === grantId) delete kept.entries[key];
    keep();
  }
}

// ------------------------------------------------------------------------------------------ users and clients

const account = async (_ctx, sub) => {
  const user = Object.values(state.users).find((each) => each.claims.sub === sub);
  return user && !user.disabled ? { accountId: sub, claims: async () => user.claims } : undefined;
};

const provider = new Provider(settings.url, {
  adapter: Adapter,
  jwks: { keys: [settings.key] },
  cookies: { keys: [settings.cookieKey] },
  clients: settings.clients.map(({ id, secret, redirects }) => ({
    client_id: id,
    ...(secret ? { client_secret: secret } : {}),
    token_endpoint_auth_method: secret ? "client_secret_basic" : "none",
    grant_types: ["authorization_code", "refresh_token"],
    response_types: ["code"],
    redirect_uris: redirects.length ? redirects : ["https://pattern.invalid/"],
  })),
  findAccount: account,
  claims: { openid: ["sub"], profile: ["preferred_username", "name"], email: ["email", "email_verified"], groups: ["groups"] },
  scopes: settings.offline ? ["openid", "offline_access"] : ["openid"],
  conformIdTokenClaims: false, // as Keycloak, Dex and Entra do: claims are in the ID token, where the API server looks
  pkce: { required: () => true },
  rotateRefreshToken: () => true,
  // Without `prompt=consent`, which the specification demands for offline_access, and most issuers do not.
  issueRefreshToken: async (_ctx, client) => settings.offline && client.grantTypeAllowed("refresh_token"),
  expiresWithSession: async () => false,
  interactions: { url: (_ctx, { uid }) => `/interaction/${uid}` },
  features: {
    devInteractions: { enabled: false },
    userinfo: { enabled: true },
    revocation: { enabled: true },
    rpInitiatedLogout: {
      enabled: settings.endSession,
      logoutSource: (ctx, form) => {
        ctx.body = html("Log out?", `${form}<button id="leave" form="op.logoutForm" name="logout" value="yes">Log out</button>`);
      },
      postLogoutSuccessSource: (ctx) => {
        ctx.body = html("Logged out", "<p>You are logged out at the issuer.</p>");
      },
    },
  },
  ttl: {
    IdToken: () => state.seconds.idToken,
    AccessToken: () => state.seconds.accessToken,
    RefreshToken: () => state.seconds.refreshToken,
    AuthorizationCode: 60,
    Interaction: 600,
    Session: 86400,
    Grant: 86400,
  },
});

// A portal of a test listens at a port that nobody knows before.
for (const name of ["redirectUriAllowed", "postLogoutRedirectUriAllowed"]) {
  const stock = provider.Client.prototype[name];
  provider.Client.prototype[name] = function allowed(uri) {
    const pattern = settings.clients.find((each) => each.id === this.clientId)?.pattern;
    return stock.call(this, uri) || Boolean(pattern && new RegExp(`^(?:${pattern})$`).test(uri));
  };
}

// ------------------------------------------------------------------------------------------ the login form

const html = (title, body) =>
  `<!doctype html><html lang="en"><head><meta charset="utf-8"><title>${title}</title><link rel="icon" href="data:,"></head>` +
  `<body><main><h1>${title}</h1>${body}</main></body></html>`;

const form = (words) =>
  html(
    "Issuer of the tests",
    `<p id="words">${words}</p><form method="post">` +
      '<p><label>User <input id="user" name="user" required></label></p>' +
      '<p><label>Password <input id="password" name="password" type="password"></label></p>' +
      '<p><button id="enter" name="do" value="enter">Enter</button> ' +
      '<button id="deny" name="do" value="deny" formnovalidate>Deny</button></p></form>',
  );

const fields = async (req) => {
  const chunks = [];
  for await (const chunk of req) chunks.push(chunk);
  return new URLSearchParams(Buffer.concat(chunks).toString());
};

const consent = async ({ params, session, grantId, prompt }) => {
  const grant = (grantId && (await provider.Grant.find(grantId))) || new provider.Grant({ accountId: session.accountId, clientId: params.client_id });
  grant.addOIDCScope((prompt.details.missingOIDCScope ?? []).join(" ") || "openid");
  if (prompt.details.missingOIDCClaims) grant.addOIDCClaims(prompt.details.missingOIDCClaims);
  return { consent: { grantId: await grant.save() } };
};

provider.use(async (ctx, next) => {
  if (!ctx.path.startsWith("/interaction/")) return next();
  const details = await provider.interactionDetails(ctx.req, ctx.res);
  const finish = async (result) => ctx.redirect(await provider.interactionResult(ctx.req, ctx.res, result));
  if (details.prompt.name === "consent") return finish(await consent(details));
  ctx.type = "html";
  if (ctx.method !== "POST") return void (ctx.body = form(""));
  const sent = await fields(ctx.req);
  if (sent.get("do") === "deny")
    return finish({ error: "access_denied", error_description: "the person refused at the issuer" });
  const user = state.users[sent.get("user")];
  if (!user || user.disabled || user.password !== sent.get("password"))
    return void (ctx.body = form("The issuer does not know this user with this password."));
  return finish({ login: { accountId: user.claims.sub } });
});

// ------------------------------------------------------------------------------------------ token requests

const decoded = (part) => JSON.parse(Buffer.from(part, "base64url"));
const encoded = (part) => Buffer.from(JSON.stringify(part)).toString("base64url");

// An ID token with claims that are not as they should be, signed as any other one, or by a key that nobody knows.
const spoil = (token, { claims, stranger }) => {
  const [header, body] = token.split(".").slice(0, 2).map(decoded);
  const changed = { ...body, ...claims };
  for (const name of Object.keys(changed)) if (changed[name] === null) delete changed[name];
  const text = `${encoded(header)}.${encoded(changed)}`;
  const key = { key: stranger ? settings.strangeKey : settings.key, format: "jwk" };
  return `${text}.${sign("RSA-SHA256", Buffer.from(text), key).toString("base64url")}`;
};

provider.use(async (ctx, next) => {
  await next();
  if (ctx.path !== "/token" || ctx.method !== "POST") return;
  const { grant_type: grant, refresh_token: refresh } = ctx.oidc?.params ?? {};
  kept.asked.push({ grant: grant ?? "", refresh: refresh ?? "", error: ctx.body?.error ?? "", description: ctx.body?.error_description ?? "" });
  keep();
  if (ctx.body?.id_token && state.spoiled) {
    ctx.body = { ...ctx.body, id_token: spoil(ctx.body.id_token, state.spoiled) };
    state.spoiled = null;
  }
  const at = state.faults.findIndex((each) => each.grant === grant);
  if (at < 0) return;
  const [fault] = state.faults.splice(at, 1);
  await new Promise((resolve) => setTimeout(resolve, fault.seconds * 1000));
  if (fault.lost) {
    ctx.respond = false;
    ctx.req.socket.destroy();
  }
});

// ------------------------------------------------------------------------------------------ the process

provider.on("server_error", (_ctx, error) => console.error(error));

const commands = {
  set: (changes) => Object.assign(state, changes),
  fault: (fault) => state.faults.push(fault),
  asked: () => kept.asked,
  forget: () => {
    kept.asked = [];
    keep();
  },
};

const server = https.createServer({ cert: settings.certificate, key: settings.certificateKey }, provider.callback());
server.listen(settings.port, "127.0.0.1", () => console.log(JSON.stringify("listening")));
const lines = createInterface({ input: process.stdin });
lines.on("line", (line) => {
  const [name, argument] = JSON.parse(line);
  console.log(JSON.stringify(commands[name](argument) ?? null));
});
lines.on("close", () => process.exit(0));
