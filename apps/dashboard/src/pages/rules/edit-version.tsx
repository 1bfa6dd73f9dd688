import { useSignal } from '@preact/signals'
import type { Version } from '@sluice/contract'
import type { JSX } from 'preact'
import { useEffect } from 'preact/hooks'
import { Button } from '../../ui/controls/button.tsx'
import { navigate } from '../../ui/navigation/router.ts'
import { Dialog } from '../../ui/overlay/dialog.tsx'
import { showFailure } from '../../ui/overlay/toast.tsx'
import { loadVersion, ruleSetOf } from './versions/enforced-rules.ts'

export interface EditVersionProps {
  /** Undefined does nothing. */
  readonly version: Version | undefined
  readonly onClose: () => void
}

/** Opens the rules of a version in the editor. Asks first where that would end another edit. */
export function EditVersion({ version, onClose }: EditVersionProps): JSX.Element {
  const pending = useSignal(0)
  useEffect(() => {
    if (version === undefined) return
    void pendingChanges().then((count) => {
      pending.value = count
      if (count === 0) void edit(version)
    })
  }, [version])
  const edit = async (chosen: Version): Promise<void> => {
    try {
      await openInEditor(chosen)
    } catch (error) {
      showFailure(error)
    }
    onClose()
  }
  return (
    <Dialog
      title="You are editing rules"
      isOpen={version !== undefined && pending.value > 0}
      onClose={onClose}
      actions={
        version === undefined ? undefined : (
          <>
            <Button onClick={() => navigate('/rules/edit')}>Go on with the edit</Button>
            <Button kind="danger" onClick={() => void edit(version)}>
              Discard it and edit version {version.number}
            </Button>
          </>
        )
      }
    >
      <p>Your edit was not published. To edit this version ends it.</p>
    </Dialog>
  )
}

/** The editor is loaded on demand. */
async function pendingChanges(): Promise<number> {
  return (await import('./editor/editor-state.ts')).pendingChanges()
}

/**
 * The edit begins with the version that this one is based on. So what was published since is merged, not undone.
 */
async function openInEditor({ number, basedOn }: Version): Promise<void> {
  const [{ openEditOf }, content, base] = await Promise.all([
    import('./editor/editor-state.ts'),
    loadVersion(number),
    basedOn === undefined ? undefined : loadVersion(basedOn),
  ])
  const began =
    base === undefined ? { version: 0, ruleSet: { rules: [] } } : { version: base.number, ruleSet: ruleSetOf(base) }
  openEditOf(began, ruleSetOf(content))
  navigate('/rules/edit')
}
