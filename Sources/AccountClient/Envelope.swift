extension AccountClient {
    /// The backend's envelope around the content of its responses.
    struct Envelope<Content: Decodable & Sendable>: Decodable, Sendable {
        let data: Content
    }
}
