/// What `google-events` is asked to do.
struct GoogleEventsOrder: Equatable, Sendable {
    enum Action: Equatable, Sendable {
        case register(url: String)
        case status
        case verify(state: String)
    }

    let action: Action
    let serviceAccountFile: String
    /// Instead of Google's own.
    let endpoint: String?
}
