/// The reason why a piece of input is not a valid grant.
///
/// It names the field and never shows a value.
package struct ImportProblem: Error, Equatable, Sendable {
    package let message: String

    package init(_ message: String) {
        self.message = message
    }
}
