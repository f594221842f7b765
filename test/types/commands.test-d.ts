/** Checked only by the compiler: unknown commands and capabilities must not compile. */
import { expectTypeOf } from 'vitest'
import { row } from '../../src/contract/command.ts'
import type { CommandName } from '../../src/contract/commands.ts'
import { anyValue } from '../../src/contract/payload.ts'

expectTypeOf<'restart'>().toExtend<CommandName<'app'>>()
expectTypeOf<'speak'>().toExtend<CommandName<'hub'>>()
expectTypeOf<CommandName<'bridge'>>().toEqualTypeOf<'log-level' | 'ping' | 'rollout' | 'rollout-cancel'>()
expectTypeOf<'speak'>().not.toExtend<CommandName<'app'>>()

const rest = { payload: anyValue, operation: 'enableApp', doc: '', run: async () => null } as const
row('app', 'enabled', { ...rest, capabilities: ['enable', 'disable'] })
// @ts-expect-error a command has only known capabilities
row('app', 'enabled', { ...rest, capabilities: ['enabel'] })
// @ts-expect-error the capabilities that depend on the input must also be known
row('app', 'enabled', { ...rest, capabilitiesOf: () => ['enabel'] })
