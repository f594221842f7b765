import manifest from '../../package.json' with { type: 'json' }

export const VERSION = manifest.version
/** The page where users can ask for help. */
export const SUPPORT_URL = manifest.bugs.url
/** The address of the documentation, with a trailing slash. */
export const DOCS_URL = `${manifest.homepage.split('#')[0]}/blob/main/docs/`
