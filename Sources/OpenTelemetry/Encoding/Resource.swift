internal import Base

/// What all telemetry of this process is about (https://opentelemetry.io/docs/specs/otel/resource/sdk).
package struct Resource: Equatable, Sendable {
    /// The longest value of an attribute, in bytes.
    static let maximumValue = 256
    package static let defaultServiceName = "refresh-worker"

    /// In the order in which they are sent, without duplicates.
    package private(set) var attributes: [Attribute]

    /// Makes the resource of a process, which `worker` names as the metrics log does.
    ///
    /// `serviceName` is from `OTEL_SERVICE_NAME` and comes first. `given` is from `OTEL_RESOURCE_ATTRIBUTES`, and
    /// precedes the worker's own attributes.
    package init(serviceName: String?, given: [Attribute], version: String, worker: String) {
        let own = [
            Attribute("service.name", .text(Self.defaultServiceName)),
            Attribute("service.version", .text(version)),
            Attribute("service.instance.id", .text(worker)),
        ]
        attributes = []
        if let serviceName { attributes.append(Attribute("service.name", .text(serviceName))) }
        for attribute in given + own where !attributes.contains(where: { $0.name == attribute.name }) {
            attributes.append(attribute)
        }
    }

    func write(to line: inout JSONLine) {
        line.object("resource") { $0.attributes(attributes) }
    }
}
