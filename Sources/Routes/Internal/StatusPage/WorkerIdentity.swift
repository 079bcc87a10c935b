package import Base

/// The process that the status page is about.
package struct WorkerIdentity: Sendable {
    package let name: String
    package let version: String
    package let startedAt: Timestamp

    package init(name: String, version: String, startedAt: Timestamp) {
        self.name = name
        self.version = version
        self.startedAt = startedAt
    }
}
