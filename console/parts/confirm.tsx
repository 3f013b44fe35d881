import type { ComponentChildren, JSX } from 'preact'
import { useLayoutEffect, useRef, useState } from 'preact/hooks'

interface ConfirmProps {
  readonly title: string
  readonly children: ComponentChildren
  /** What has to be typed; undefined: nothing. */
  readonly word?: string
  readonly action: string
  readonly act: () => Promise<void>
  readonly close: () => void
}

/** Asks before something is done. What is grave is typed. */
export function Confirm({ title, children, word, action, act, close }: ConfirmProps): JSX.Element {
  const dialog = useRef<HTMLDialogElement>(null)
  const [typed, setTyped] = useState('')
  const [fault, setFault] = useState('')
  const isActing = useRef(false)
  // Before it is painted: what is typed at once goes into the dialog, not to the page below it.
  useLayoutEffect(() => dialog.current?.showModal(), [])
  // A dialog that is closed, not only taken away, gives the focus back to the button that opened it.
  const end = (): void => dialog.current?.close()
  const submit = async (event: Event): Promise<void> => {
    event.preventDefault()
    // A second Enter before the answer is no second command.
    if (isActing.current || (word !== undefined && typed !== word)) return
    isActing.current = true
    try {
      await act()
      end()
    } catch (error) {
      setFault(error instanceof Error ? error.message : String(error))
    } finally {
      isActing.current = false
    }
  }
  return (
    <dialog ref={dialog} onClose={close} aria-labelledby="confirm-title">
      <form onSubmit={(event) => void submit(event)}>
        <h2 id="confirm-title">{title}</h2>
        {children}
        {word !== undefined && (
          <label>
            Type <b>{word}</b> to confirm
            <input
              value={typed}
              autocomplete="off"
              autofocus
              onInput={(event) => setTyped(event.currentTarget.value)}
            />
          </label>
        )}
        {fault !== '' && (
          <p class="stale" role="alert">
            {fault}
          </p>
        )}
        <p class="actions">
          <button type="submit" disabled={word !== undefined && typed !== word}>
            {action}
          </button>
          <button type="button" onClick={end}>
            Cancel
          </button>
        </p>
      </form>
    </dialog>
  )
}
