/// Why the text of a setting, a file or a record cannot be used: the second half of a sentence that begins
/// with its name.
///
/// It never shows the value.
package struct InputError: Error, Equatable, Sendable {
    package let message: String
    /// `true` if the file does not exist, which is not an error for an optional file.
    package let isMissing: Bool
    /// `true` if the same call can succeed later without a change by the operator.
    package let mayPass: Bool
    /// The user whom a record is about, if that could be read.
    package var userID: String?

    package init(_ message: String, isMissing: Bool = false, mayPass: Bool = false) {
        self.message = message
        self.isMissing = isMissing
        self.mayPass = mayPass
    }
}
