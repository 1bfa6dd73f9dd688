import { useComputed, useSignal } from '@preact/signals'
import type { JSX } from 'preact'
import { useEffect } from 'preact/hooks'
import { every } from '../../clock-and-timers.ts'
import { Button } from '../../ui/controls/button.tsx'
import { Notice } from '../../ui/feedback/states.tsx'
import { hrefOf, location, navigate } from '../../ui/navigation/router.ts'
import { showFailure, showToast } from '../../ui/overlay/toast.tsx'
import { Card, Page } from '../../ui/shell/page.tsx'
import { countText, pluralText } from '../../ui/theme/format.ts'
import { ComparisonTable } from './comparison-table.tsx'
import { LaneCard } from './lane-card.tsx'
import classes from './playground.module.css'
import type { Scenario } from './scenario.ts'
import { readScenario, scenarioQuery } from './scenario.ts'
import { ScenarioForm } from './scenario-form.tsx'
import { RESULT_COLUMNS, simulate } from './simulation.ts'
import { TrafficEditor } from './traffic-editor.tsx'

/** Columns that a replay shows in a second. */
const REPLAY_COLUMNS_PER_SECOND = 24

/** Algorithms side by side on the same traffic. It runs the code of the service, in the browser. */
export function PlaygroundPage(): JSX.Element {
  const read = useComputed(() => readScenario(location.value.query))
  // What is being drawn is not in the URL yet: browsers limit how often it changes.
  const drawing = useSignal<readonly number[] | undefined>(undefined)
  const scenario = useComputed<Scenario>(() => {
    const { scenario: linked } = read.value
    return drawing.value === undefined ? linked : { ...linked, shape: 'drawn', levels: drawing.value }
  })
  const simulation = useComputed(() => simulate(scenario.value))
  const hovered = useSignal<number | undefined>(undefined)
  const replay = useReplay()
  const change = (part: Partial<Scenario>): void => {
    drawing.value = undefined
    const query = scenarioQuery({ ...scenario.value, ...part })
    navigate(query === '' ? '/playground' : `/playground?${query}`, { replace: true })
  }
  const shown = replay.column.value ?? RESULT_COLUMNS
  const { lanes, offered, offeredCount, isCut } = simulation.value
  const highest = Math.max(1, ...offered, ...lanes.flatMap((lane) => lane.admitted))
  return (
    <Page
      title="Playground"
      description="Choose a limit and traffic, and see what each algorithm admits. Nothing is sent: it runs here."
      actions={
        <>
          <Button icon={replay.isRunning.value ? 'pause' : 'play'} onClick={replay.toggle}>
            {replay.isRunning.value ? 'Stop' : 'Replay'}
          </Button>
          <Button icon="copy" onClick={() => void copyLink(scenario.value)}>
            Copy link
          </Button>
        </>
      }
    >
      {read.value.problems.length === 0 ? null : (
        <Notice tone="warning">
          {read.value.problems.map((problem) => (
            <div key={problem}>{problem}</div>
          ))}
          The values of the first scenario are used instead.
        </Notice>
      )}
      <div class={classes.layout}>
        <div class={classes.side}>
          <Card title="Scenario">
            <ScenarioForm scenario={scenario.value} onChange={change} />
          </Card>
        </div>
        <div class={classes.results}>
          <Card
            title="Traffic"
            description={
              isCut
                ? `Only the first ${countText(offeredCount)} calls are simulated.`
                : `${pluralText(offeredCount, 'call')} from one caller over 4 windows. Draw over the chart for others.`
            }
          >
            <TrafficEditor
              scenario={scenario.value}
              offered={offered}
              hovered={hovered}
              onDraw={(levels) => {
                drawing.value = levels
              }}
              onDrawn={(levels) => change({ shape: 'drawn', levels })}
            />
          </Card>
          {lanes.map((lane) => (
            <LaneCard
              key={lane.algorithm}
              lane={lane}
              scenario={scenario.value}
              highest={highest}
              hovered={hovered}
              shown={shown}
            />
          ))}
          <Card title="Side by side" isFlush>
            <ComparisonTable lanes={lanes} scenario={scenario.value} />
          </Card>
        </div>
      </div>
    </Page>
  )
}

/** Shows the results column by column; `column` is undefined when all are in sight. */
function useReplay() {
  const column = useSignal<number | undefined>(undefined)
  const isRunning = useComputed(() => column.value !== undefined)
  useEffect(() => {
    if (!isRunning.value) return undefined
    return every(1000 / REPLAY_COLUMNS_PER_SECOND, () => {
      const next = (column.peek() ?? 0) + 1
      column.value = next > RESULT_COLUMNS ? undefined : next
    })
  }, [isRunning.value])
  const toggle = (): void => {
    column.value = column.peek() === undefined ? 0 : undefined
  }
  return { column, isRunning, toggle }
}

async function copyLink(scenario: Scenario): Promise<void> {
  const url = new URL(hrefOf(`/playground?${scenarioQuery(scenario)}`), document.baseURI)
  try {
    await navigator.clipboard.writeText(url.href)
    showToast('The link to this scenario was copied.')
  } catch (error) {
    showFailure(error)
  }
}
