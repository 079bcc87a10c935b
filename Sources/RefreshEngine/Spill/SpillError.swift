/// Why results could not be kept outside the store, or not be read back.
package struct SpillError: Error, Hashable, Sendable, CustomStringConvertible {
    /// What happened, where, and what to do about it.
    package var message: String

    package init(_ message: String) {
        self.message = message
    }

    package var description: String { message }
}
