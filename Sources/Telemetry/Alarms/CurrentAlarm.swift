package import Base

/// An alarm whose cause was seen lately, and has not ended as far as the worker knows.
package struct CurrentAlarm: Hashable, Sendable {
    package var kind: AlarmKind
    /// The client id that the alarm is about, or empty if it is about none.
    package var client: String
    /// The sentence of the last time.
    package var text: String
    /// When the cause was first seen.
    package var since: Timestamp
    /// When it stops counting as current, unless its cause is seen again.
    package var until: Timestamp
    /// How often it was seen since then.
    package var count: Int

    package init(kind: AlarmKind, client: String, text: String, since: Timestamp, until: Timestamp, count: Int) {
        self.kind = kind
        self.client = client
        self.text = text
        self.since = since
        self.until = until
        self.count = count
    }
}
