/// The reason why results could not be written to, or read from, the spill file.
package struct SpillFileError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The failure, its place, and the advice to the operator.
    package var message: String

    package init(_ message: String) {
        self.message = message
    }

    package var description: String { message }
}
