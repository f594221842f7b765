# hub2mqtt as a container image. Build it for both kinds of machine:
#   docker buildx build --platform linux/amd64,linux/arm64 --build-arg REVISION=$(git rev-parse HEAD) .
# A release pins the base by digest: --build-arg BASE=node:24-bookworm-slim@sha256:…
ARG BASE=node:24-bookworm-slim
# What to make: runtime, or home-assistant for the app of Home Assistant.
ARG VARIANT=runtime

# What the bundler makes is the same for every platform.
FROM ${BASE} AS build
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
RUN npm ci --ignore-scripts --no-audit --no-fund
COPY tsconfig.json ./
COPY src ./src
RUN npm run build && npm run build:page

# Production dependencies only. The optional ones are a Node of their own, which the base has already.
FROM ${BASE} AS dependencies
WORKDIR /hub2mqtt
COPY package.json package-lock.json .npmrc ./
RUN npm ci --ignore-scripts --no-audit --no-fund --omit=dev --omit=optional \
 # The bill of materials is of what is installed here; what was left out on purpose would count as missing.
 && npm pkg delete devDependencies optionalDependencies \
 && npm sbom --sbom-format=cyclonedx > sbom.cdx.json \
 # Nothing at run time reads types, source maps, bundles for browsers, tests or documentation. Licences stay.
 && rm -rf node_modules/@types node_modules/undici-types node_modules/.package-lock.json \
      node_modules/mqtt/dist node_modules/socket.io/client-dist node_modules/socket.io-client/dist \
      node_modules/engine.io-client/dist node_modules/yaml/browser \
 && find node_modules -type d \( -name test -o -name tests -o -name __tests__ -o -name docs -o -name example \
      -o -name examples -o -name benchmark -o -name benchmarks -o -name .github \) -prune -exec rm -rf {} + \
 && find node_modules -type f \( -name '*.map' -o -name '*.d.ts' -o -name '*.d.mts' -o -name '*.d.cts' \
      -o \( -iname '*.md' ! -iname 'license*' \) \) -delete \
 # Everything that the program names can still be loaded.
 && node --input-type=module -e "import manifest from './package.json' with { type: 'json' }; \
      for (const name of Object.keys(manifest.dependencies)) await import(name)"

FROM ${BASE} AS program
ARG VERSION=0.2.0
ARG REVISION=unknown
LABEL org.opencontainers.image.title="hub2mqtt" \
      org.opencontainers.image.description="Puts the apps of a home hub on MQTT: state, events, commands and Home Assistant discovery." \
      org.opencontainers.image.source="https://git.example/hub2mqtt/hub2mqtt" \
      org.opencontainers.image.licenses="MIT" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"
# What runs needs no package manager. The command is the process itself: no shell and no child stand between it and signals.
RUN rm -rf /usr/local/lib/node_modules /usr/local/bin/npm /usr/local/bin/npx /usr/local/bin/corepack \
      /usr/local/bin/yarn /usr/local/bin/yarnpkg /opt/yarn* \
 && ln -s /app/src/bin.js /usr/local/bin/hub2mqtt
# The container is the border here, so that probes and Prometheus may come in; the embedded broker stays on loopback.
# As in npm start. Small semi-spaces: what an event leaves behind is garbage at once, and need not pile up first. One
# arena: glibc keeps one for every thread else, and gives little of it back. With 50 hubs and more the program also makes
# V8 collect garbage more often, which costs processor time.
ENV NODE_ENV=production HUB2MQTT_HTTP_HOST=0.0.0.0 NODE_OPTIONS=--max-semi-space-size=8 MALLOC_ARENA_MAX=1
WORKDIR /app
# The bundle has them in it. These are what its parsers on demand are loaded from, and what scanners of images look for.
COPY --from=dependencies /hub2mqtt/node_modules ./node_modules
COPY --from=build /app/dist ./dist
COPY --from=build /app/src/web/ui/dist ./src/web/ui/dist
COPY src/emulator/sdk ./src/emulator/sdk
COPY --from=dependencies /hub2mqtt/sbom.cdx.json ./
COPY package.json LICENSE ./
COPY config/openapi.json ./config/openapi.json
COPY config/demo/apps ./config/demo/apps
COPY config/demo/store ./config/demo/store
COPY src/bin.js ./src/bin.js

# What Node makes of the program, kept for the user who runs it: the demo loads all that a bridge does. It takes any free
# ports, and its own output says when it is ready: with the host's network another daemon may run on the usual ports.
FROM program AS compiled
RUN mkdir -m 777 node_modules/.cache
USER 1000:1000
RUN export HUB2MQTT_HTTP_PORT=0 HUB2MQTT_MQTT_EMBEDDED_PORT=0; \
    hub2mqtt demo > /tmp/demo & \
    until grep -qs 'The demo runs' /tmp/demo; do kill -0 $! || exit 1; sleep 1; done; \
    kill -TERM $! && wait $!
USER root
RUN chmod 755 node_modules/.cache && chmod -R a+rX node_modules/.cache

FROM program AS runtime
COPY --from=compiled /app/node_modules/.cache ./node_modules/.cache
USER 1000:1000
EXPOSE 8099
HEALTHCHECK --interval=15s --timeout=5s --start-period=30s --retries=3 CMD ["hub2mqtt", "health"]
ENTRYPOINT ["hub2mqtt"]
CMD ["run"]

# Home Assistant hands over its options in a file for root; run.js reads it and gives up root before anything else.
FROM runtime AS home-assistant
ARG VERSION=0.2.0
LABEL io.hass.type="addon" io.hass.version="${VERSION}" io.hass.arch="amd64|aarch64"
USER root
# The Supervisor has its users logged in before it shows them the page.
ENV HUB2MQTT_HTTP_INGRESS=true HUB2MQTT_HTTP_TRUSTED_PROXIES=172.30.32.2
COPY config/home-assistant-app/run.js ./config/home-assistant-app/
ENTRYPOINT ["node", "/app/config/home-assistant-app/run.js"]

FROM ${VARIANT}
