import Base

/// The time for which an answer may be cached (RFC 9111, section 5.2.2.1).
enum CacheLifetime {
    private static let defaultLifetime = Duration.seconds(3600)
    private static let limits = Duration.seconds(300)...Duration.seconds(86_400)

    /// Returns `max-age` within limits, or an hour if the header does not have it.
    static func read(cacheControl: String?) -> Duration {
        let directives = (cacheControl ?? "").lowercased().split(separator: ",")
        for directive in directives {
            let words = directive.split(separator: "=", maxSplits: 1).map { $0.filter { $0 != " " && $0 != "\"" } }
            guard words.count == 2, words[0] == "max-age", let seconds = Int64(words[1]) else { continue }
            return Duration.seconds(seconds.clamped(to: 0...1_000_000)).clamped(to: limits)
        }
        return defaultLifetime
    }
}
