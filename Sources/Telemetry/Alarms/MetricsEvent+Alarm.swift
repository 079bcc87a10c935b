extension MetricsEvent {
    /// A condition that a person should look at, reported once and not for each grant.
    ///
    /// `count` are the grants or answers that caused it since it was last reported.
    package static func alarm(_ alarm: CurrentAlarm, count: Int) -> MetricsEvent {
        MetricsEvent("alarm") { line in
            line.text("kind", alarm.kind.rawValue, "its code")
            line.text("text", alarm.text, maximum: MetricsLine.maximumSentence, "a sentence")
            line.number("count", count, "the grants or answers that caused it")
            line.text("client", ifAny: alarm.client.isEmpty ? nil : alarm.client, "the client id, if it is about one")
        }
    }
}
