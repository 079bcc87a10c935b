package import Base
package import Telemetry

/// Sends spans in batches, the sizes and pauses of which are those of OpenTelemetry's own libraries.
package struct TracesExporter: Sendable {
    package static let interval: Duration = .seconds(5)
    static let batchSize = 512
    /// How long a batch is tried. Meanwhile the buffer fills, and what does not fit is dropped.
    static let maximumTime: Duration = .seconds(30)

    private let sender: TelemetrySender
    package let spans: SpanBuffer
    private let request: TracesRequest
    private let time: any TimeSource

    package init(over sender: TelemetrySender, of spans: SpanBuffer, request: TracesRequest, time: any TimeSource) {
        self.sender = sender
        self.spans = spans
        self.request = request
        self.time = time
    }

    /// Sends until the task is cancelled.
    package func run() async {
        await time.repeat(every: Self.interval, immediately: false) { await export(within: Self.maximumTime) }
    }

    /// Sends all spans that wait, each batch for as long as this span of time.
    package func export(within limit: Duration) async {
        while !Task.isCancelled {
            let batch = spans.take(atMost: Self.batchSize)
            guard !batch.isEmpty else { return }
            await sender.send(request.encode(batch), within: limit)
        }
    }
}
