/// The reason why a request's body is refused; it never contains parts of the body.
enum RequestBodyError: Error, Hashable, Sendable {
    /// The request does not have a body and does not declare one.
    case undeclared
    case unsupportedMediaType
    /// The content does not match its media type.
    case unreadable
    /// A required field that is missing.
    case missing(String)
    /// A field with an invalid value, and the requirement, such as "a number of seconds".
    case invalid(String, mustBe: String)
}
