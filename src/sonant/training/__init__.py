"""The trainer: one loop for every task, which knows neither speech nor text."""
