/// The policy for exchanging refresh tokens for new ones.
enum RotationPolicy: Equatable, Sendable {
    /// Like Google: the refresh token stays the same.
    case off

    /// Each refresh issues a successor.
    ///
    /// The predecessor stays valid until the successor is first used.
    case careful

    /// Each refresh issues a successor.
    ///
    /// The predecessor is dead at once.
    case strict
}
