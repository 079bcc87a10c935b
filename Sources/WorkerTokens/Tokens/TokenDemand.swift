/// What one caller asks for.
struct TokenDemand {
    let subject: TokenSubject
    let minimumLife: Int
    /// The token that Google refused, if any.
    let refused: String?

    /// `true` if the response to another demand about the same subject is good for this one.
    func isServed(by other: TokenDemand) -> Bool {
        // A response to a plain request might be the very token that Google refused.
        if let refused { return other.refused == refused }
        return other.minimumLife >= minimumLife
    }
}
