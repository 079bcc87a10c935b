extension Comparable {
    /// Returns the value, or the nearest end of the range if it is outside.
    package func clamped(to range: ClosedRange<Self>) -> Self {
        min(max(self, range.lowerBound), range.upperBound)
    }
}
