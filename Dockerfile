# hub2mqtt as a container image. Build it for both platforms:
#   docker buildx build --platform linux/amd64,linux/arm64 --build-arg REVISION=$(git rev-parse HEAD) .
# A release pins the base by digest: --build-arg BASE=node:24-bookworm-slim@sha256:…
ARG BASE=node:24-bookworm-slim
# The image to build: runtime, or home-assistant for the Home Assistant app.
ARG VARIANT=runtime

# The bundle is the same for every platform.
FROM ${BASE} AS build
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
RUN npm ci --ignore-scripts --no-audit --no-fund
COPY tsconfig.json ./
COPY src ./src
# The emulated hub's apps come from the manifests of the demo's apps.
COPY config/demo/apps ./config/demo/apps
RUN npm run build && npm run build:page

# Omits the optional dependencies: they contain Node, which the base image already has.
FROM ${BASE} AS dependencies
WORKDIR /hub2mqtt
COPY package.json package-lock.json .npmrc ./
RUN npm ci --ignore-scripts --no-audit --no-fund --omit=dev --omit=optional \
 # The bill of materials lists only what is installed here: packages that were omitted on purpose would count as missing.
 && npm pkg delete devDependencies optionalDependencies \
 && npm sbom --sbom-format=cyclonedx > sbom.cdx.json \
 # Removes files that the program does not read: types, source maps, browser bundles, tests and documentation.
 && rm -rf node_modules/@types node_modules/undici-types node_modules/.package-lock.json \
      node_modules/mqtt/dist node_modules/socket.io/client-dist node_modules/socket.io-client/dist \
      node_modules/engine.io-client/dist node_modules/yaml/browser \
 && find node_modules -type d \( -name test -o -name tests -o -name __tests__ -o -name docs -o -name example \
      -o -name examples -o -name benchmark -o -name benchmarks -o -name .github \) -prune -exec rm -rf {} + \
 && find node_modules -type f \( -name '*.map' -o -name '*.d.ts' -o -name '*.d.mts' -o -name '*.d.cts' \
      -o \( -iname '*.md' ! -iname 'license*' \) \) -delete \
 # Checks that every dependency can still be loaded.
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
# The program needs no package manager.
RUN rm -rf /usr/local/lib/node_modules /usr/local/bin/npm /usr/local/bin/npx /usr/local/bin/corepack \
      /usr/local/bin/yarn /usr/local/bin/yarnpkg /opt/yarn* \
 && ln -s /app/src/bin.js /usr/local/bin/hub2mqtt
# The listener accepts connections from outside the container (probes, Prometheus); the embedded broker does not.
# Two settings save memory, as in npm start: small semi-spaces, because most objects of an event become garbage at once,
# and a single malloc arena, because glibc otherwise keeps an arena for each thread and returns little memory.
ENV NODE_ENV=production HUB2MQTT_HTTP_HOST=0.0.0.0 NODE_OPTIONS=--max-semi-space-size=8 MALLOC_ARENA_MAX=1
WORKDIR /app
# The packages are for the parsers that are loaded on demand and for image scanners; the bundle contains all others.
COPY --from=dependencies /hub2mqtt/node_modules ./node_modules
COPY --from=build /app/dist ./dist
COPY --from=build /app/src/web/ui/dist ./src/web/ui/dist
COPY src/emulator/sdk ./src/emulator/sdk
COPY --from=dependencies /hub2mqtt/sbom.cdx.json ./
COPY package.json LICENSE ./
COPY config/openapi.json ./config/openapi.json
COPY config/demo/apps ./config/demo/apps
COPY config/demo/store ./config/demo/store
COPY config/new-app ./config/new-app
COPY src/bin.js ./src/bin.js

# Fills Node's compile cache for the user that runs the program: the demo loads everything that a bridge loads. With the
# host's network, another daemon may use the default ports, so the demo uses free ports.
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

# Home Assistant passes its options in a file that only root can read; run.js reads the file and drops root at once.
FROM runtime AS home-assistant
ARG VERSION=0.2.0
LABEL io.hass.type="addon" io.hass.version="${VERSION}" io.hass.arch="amd64|aarch64"
USER root
# The Supervisor shows the page only to users who are logged in.
ENV HUB2MQTT_HTTP_INGRESS=true HUB2MQTT_HTTP_TRUSTED_PROXIES=172.30.32.2
COPY config/home-assistant-app/run.js ./config/home-assistant-app/
ENTRYPOINT ["node", "/app/config/home-assistant-app/run.js"]

FROM ${VARIANT}
