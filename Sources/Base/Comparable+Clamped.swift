extension Comparable {
    /// Returns the value, or the nearest end of the range if it is outside.
    @inlinable
    package func clamped(to range: ClosedRange<Self>) -> Self {
        min(max(self, range.lowerBound), range.upperBound)
    }
}
