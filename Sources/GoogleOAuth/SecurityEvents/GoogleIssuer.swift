/// The name of the issuer of security events.
enum GoogleIssuer {
    /// Compares two issuers.
    ///
    /// Google writes its own name with a trailing slash in one place and without it in another.
    static func areSame(_ first: String, _ second: String) -> Bool {
        bare(first) == bare(second)
    }

    private static func bare(_ issuer: String) -> Substring {
        issuer.hasSuffix("/") ? issuer.dropLast() : issuer[...]
    }
}
