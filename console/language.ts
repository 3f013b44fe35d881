/**
 * Part of the bundle ahead of everything else (`scripts/console.ts`). Under the locale `C` browsers call their language
 * `en-US@posix`, which `Intl` takes for no language: the chart library asks for its numbers while it loads, and no page
 * would ever be drawn.
 */
function isLanguage(tag: string): boolean {
  try {
    return Intl.getCanonicalLocales(tag).length > 0
  } catch (error) {
    if (error instanceof RangeError) return false
    throw error
  }
}

if (!isLanguage(navigator.language))
  Object.defineProperty(navigator, 'language', { value: 'en-US', configurable: true })
