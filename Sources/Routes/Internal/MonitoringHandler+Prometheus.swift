import HTTPServer
import Status

extension MonitoringHandler {
    func prometheus() async -> ServerResponse {
        let list = await metrics.metrics(certificateExpiresAt: certificateExpiry())
        return ServerResponse(
            headers: [("Content-Type", PrometheusText.contentType)],
            body: PrometheusText(list).bytes
        )
    }
}
