/// The maximum length in bytes of a text in the metrics log.
enum TextLimit {
    /// A code, an id or a name.
    static let name = 128
    /// A text from Google.
    static let answer = 256
    /// A sentence of the worker.
    static let sentence = 512
}
