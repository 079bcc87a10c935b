/// The arguments of `google-events`.
package struct GoogleEventsOptions: Equatable, Sendable {
    package enum Action: Equatable, Sendable {
        case register(url: String)
        case status
        case verify(state: String)
    }

    package let action: Action
    package let serviceAccountFile: String
    /// The endpoint to use instead of Google's.
    package let endpoint: String?
    package var isJSON = false
}
