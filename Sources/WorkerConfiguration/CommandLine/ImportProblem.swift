/// The reason why a record of an import is not a valid grant or user.
///
/// It names the field and does not show its value.
package struct ImportProblem: Error, Equatable, Sendable {
    package let message: String

    package init(_ message: String) {
        self.message = message
    }
}
