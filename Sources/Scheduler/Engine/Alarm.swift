package import Telemetry

/// An event that a person must look at.
package struct Alarm: Hashable, Sendable {
    package var kind: AlarmKind
    package var clientID: String
    package var text: String
}
