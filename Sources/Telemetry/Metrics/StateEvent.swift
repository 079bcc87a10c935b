package import Base

/// A grant's move from one state to another.
package struct StateEvent: MetricsEvent {
    package static let name = "state"

    package static let fields: [MetricsField] = [
        .always("grant", .string, "the grant's id, 16 hexadecimal digits"),
        .always("from", .string, "the state that it left, as in `active` or `retrying`"),
        .always("to", .string, "the state that it entered, as in `disconnected`"),
        .always("reason", .string, "the code of the reason; empty where there is none"),
        .always("generation", .integer, "the version of the stored refresh token after the move"),
    ]

    /// The grant's id, 16 hexadecimal digits.
    package var grant: String
    package var from: String
    package var to: String
    /// The code of the reason, or an empty text.
    package var reason: String
    /// The version of the stored refresh token after the change.
    package var generation: Int64

    package init(grant: String, from: String, to: String, reason: String, generation: Int64) {
        self.grant = grant
        self.from = from
        self.to = to
        self.reason = reason
        self.generation = generation
    }

    package func write(into line: inout JSONLine) {
        line.text("grant", grant, limit: TextLimit.name)
        line.text("from", from, limit: TextLimit.name)
        line.text("to", to, limit: TextLimit.name)
        line.text("reason", reason, limit: TextLimit.name)
        line.field("generation", generation)
    }
}
