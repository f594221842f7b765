/** Checked by the compiler alone: a name that is no command, or an act that is none, must not compile. */
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
// @ts-expect-error a command can only do what there is to be done
row('app', 'enabled', { ...rest, acts: ['enabel'] })
// @ts-expect-error the same where it depends on the input
row('app', 'enabled', { ...rest, does: () => ['enabel'] })
