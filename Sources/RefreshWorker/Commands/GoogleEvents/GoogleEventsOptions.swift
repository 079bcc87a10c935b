/// The arguments of `google-events`.
struct GoogleEventsOptions: Equatable, Sendable {
    enum Action: Equatable, Sendable {
        case register(url: String)
        case status
        case verify(state: String)
    }

    let action: Action
    let serviceAccountFile: String
    /// The endpoint to use instead of Google's.
    let endpoint: String?
}
