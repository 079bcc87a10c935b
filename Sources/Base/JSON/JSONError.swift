/// The reason why a text is not JSON, with the byte offset.
package struct JSONError: Error, Hashable, Sendable, CustomStringConvertible {
    package var problem: String
    package var offset: Int

    package var description: String { "\(problem) at byte \(offset)" }
}
